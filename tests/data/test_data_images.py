"""A folder of images: any size, any mode, names kept, broken files reported by name."""

from __future__ import annotations

import numpy as np
import pytest

from reclust.data import DataError, read

image = pytest.importorskip("PIL.Image")
RNG = np.random.default_rng(5)


def noise(*shape, high=256, dtype=np.uint8):
    return RNG.integers(0, high, shape).astype(dtype)


def test_equal_images_come_back_unchanged_in_the_order_of_their_names(tmp_path):
    grey = {f"{name}.png": noise(9, 7) for name in "cab"}
    for name, pixels in grey.items():
        image.fromarray(pixels).save(tmp_path / name)
    (tmp_path / "notes.txt").write_text("not an image")
    found = read(tmp_path)
    assert found.ids.tolist() == ["a.png", "b.png", "c.png"] and found.image_shape == (1, 9, 7)
    np.testing.assert_array_equal(found.images, [grey[name] for name in found.ids])


def test_folders_give_labels(tmp_path):
    for name in ("cat/1.png", "dog/deep/2.PNG", "cat/3.bmp"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        image.fromarray(noise(4, 4, 3)).save(tmp_path / name)
    found = read(tmp_path, labels="folder")
    assert found.ids.tolist() == ["cat/1.png", "cat/3.bmp", "dog/deep/2.PNG"] and found.labels.tolist() == [0, 0, 1]
    image.fromarray(noise(4, 4, 3)).save(tmp_path / "4.png")
    with pytest.raises(DataError, match=r"1 of 4 images are in no folder below it, such as 4\.png"):
        read(tmp_path, labels="folder")


def test_any_mode_and_size_becomes_one_array(tmp_path):
    colour, alpha, grey, deep = (
        noise(40, 30, 3),
        noise(32, 32, 4),
        noise(50, 20),
        noise(32, 32, high=65536, dtype=np.uint16),
    )
    for name, pixels in {"colour": colour, "alpha": alpha, "grey": grey, "sixteen": deep}.items():
        image.fromarray(pixels).save(tmp_path / f"{name}.png")
    image.fromarray(colour).quantize(16).save(tmp_path / "palette.gif")
    image.fromarray(noise(32, 32) > 128).save(tmp_path / "bits.png")
    image.fromarray(colour).convert("CMYK").save(tmp_path / "print.jpg")
    found = read(tmp_path)
    assert found.images.shape == (7, 32, 32, 3)
    at = dict(zip(found.ids, found.images, strict=True))
    expected = image.fromarray(colour).resize((32, 32), image.Resampling.BILINEAR)
    np.testing.assert_array_equal(at["colour.png"], np.asarray(expected))
    np.testing.assert_array_equal(at["alpha.png"], alpha[..., :3])
    np.testing.assert_array_equal(at["sixteen.png"], np.repeat(deep[..., None] // 257, 3, 2))
    assert read(tmp_path, size=(10, 12)).images.shape == (7, 10, 12, 3)
    at = dict(zip(found.ids, read(tmp_path, size=(32, 32, 1)).images, strict=True))
    np.testing.assert_array_equal(at["sixteen.png"], deep // 257)
    np.testing.assert_array_equal(at["colour.png"], np.asarray(image.fromarray(colour).convert("L").resize((32, 32), image.Resampling.BILINEAR)))


def test_grey_images_can_be_read_as_colours(tmp_path):
    pixels = noise(6, 5)
    image.fromarray(pixels).save(tmp_path / "a.png")
    np.testing.assert_array_equal(read(tmp_path, size=(6, 5, 3)).images[0], np.repeat(pixels[..., None], 3, 2))
    for size in ((6,), (6, 5, 2), (0, 5), (6, 5, 3, 1)):
        with pytest.raises(ValueError, match=r"needed: \(height, width\) or \(height, width, channels\)"):
            read(tmp_path, size=size)


def test_sixteen_bits_alone_stay_grey_and_images_are_turned_upright(tmp_path):
    deep = noise(8, 6, high=65536, dtype=np.uint16)
    image.fromarray(deep).save(tmp_path / "a.tif")
    np.testing.assert_array_equal(read(tmp_path).images[0], deep // 257)
    (tmp_path / "a.tif").unlink()
    pixels, exif = noise(8, 6), image.Exif()
    exif[0x0112] = 6  # the camera was held a quarter turn to the side
    image.fromarray(pixels).save(tmp_path / "a.png", exif=exif)
    np.testing.assert_array_equal(read(tmp_path).images[0], np.rot90(pixels, -1))


def test_broken_files_are_all_named_or_left_out(tmp_path, caplog):
    for name in "abcd":
        image.fromarray(noise(16, 16)).save(tmp_path / f"{name}.png")
    image.fromarray(noise(99, 99, 3)).save(tmp_path / "e.png")
    (tmp_path / "b.png").write_bytes(b"not an image")
    whole = (tmp_path / "e.png").read_bytes()
    (tmp_path / "e.png").write_bytes(whole[: len(whole) // 2])  # a good header: colour, another size
    (tmp_path / "f.png").write_bytes(b"")
    with pytest.raises(DataError, match=r"3 of 6 images.*on_error='skip' \(on the command line --skip-broken\).*b\.png.*f\.png.*e\.png"):
        read(tmp_path)
    found = read(tmp_path, on_error="skip")
    assert found.ids.tolist() == ["a.png", "c.png", "d.png"] and found.image_shape == (1, 16, 16)
    assert "3 of 6 images" in caplog.text and "e.png" in caplog.text


def test_nothing_to_read_is_said(tmp_path):
    with pytest.raises(DataError, match="holds no images"):
        read(tmp_path)
    (tmp_path / "a.png").write_bytes(b"x")
    with pytest.raises(DataError, match="None of the 1 images"):
        read(tmp_path, on_error="skip")
    with pytest.raises(ValueError, match="on_error='ignore'"):
        read(tmp_path, on_error="ignore")
    with pytest.raises(DataError, match="labels='kind'"):
        image.fromarray(noise(4, 4)).save(tmp_path / "a.png")
        read(tmp_path, labels="kind")


def test_programs_in_disguise_and_bombs_are_not_opened(tmp_path, formats):
    (tmp_path / "a.png").write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n(%pipe%true) (r) file\n")
    with pytest.raises(DataError, match=r"a\.png"):
        read(tmp_path)
    (tmp_path / "a.png").write_bytes(b"P6\n100000 100000\n255\n" + bytes(100))
    with pytest.raises(DataError, match=r"a\.png"):
        read(tmp_path)
