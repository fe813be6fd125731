"""A folder of images: any size, any mode, names kept, broken files reported by name."""

from __future__ import annotations

import os
import re
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from support import memory_of

import reclust
from reclust import ReclustWarning
from reclust.data import DataError, prepare, read

image = pytest.importorskip("PIL.Image")
RNG = np.random.default_rng(5)


def noise(*shape, high=256, dtype=np.uint8):
    return RNG.integers(0, high, shape).astype(dtype)


def on_white(pixels, alpha):
    return 255 - (255.0 - pixels) * alpha / 255


def test_equal_images_come_back_unchanged_in_the_order_of_their_names(tmp_path):
    grey = {f"{name}.png": noise(9, 7) for name in "cab"}
    for name, pixels in grey.items():
        image.fromarray(pixels).save(tmp_path / name)
    (tmp_path / "notes.txt").write_text("not an image")
    found = read(tmp_path)
    assert found.ids.tolist() == ["a.png", "b.png", "c.png"] and found.image_shape == (1, 9, 7)
    np.testing.assert_array_equal(found.images, [grey[name] for name in found.ids])


def test_a_single_image_is_one_sample(tmp_path):
    pixels = noise(9, 7, 3)
    image.fromarray(pixels).save(tmp_path / "one.PNG")
    found = read(tmp_path / "one.PNG")
    assert found.ids.tolist() == ["one.PNG"] and found.image_shape == (3, 9, 7) and found.name == "one"
    np.testing.assert_array_equal(found.images, pixels[None])
    assert read(tmp_path / "one.PNG", size=(4, 4, 1)).image_shape == (1, 4, 4)
    (tmp_path / "broken.png").write_bytes(b"no image")
    for options in ({}, {"on_error": "skip"}):
        with pytest.raises(DataError, match=r"None of the 1 images.*broken\.png"):
            read(tmp_path / "broken.png", **options)
    with pytest.raises(DataError, match="no file or folder"):
        read(tmp_path / "nothing.png")


def test_photos_in_formats_that_are_not_read_are_told(tmp_path):
    for name in ("a.HEIC", "b.heic", "c.dng", "._d.heic"):
        (tmp_path / name).write_bytes(b"ftyp")
    with pytest.raises(DataError, match=r"holds no images; .* 3 photos in .* \(\.dng, \.heic\): convert them to JPEG or PNG first"):
        read(tmp_path)
    image.fromarray(noise(9, 7)).save(tmp_path / "e.jfif", format="JPEG")
    with pytest.warns(ReclustWarning, match="^3 photos in .* are left out .*: convert them"):
        assert read(tmp_path).ids.tolist() == ["e.jfif"]


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
    np.testing.assert_allclose(at["alpha.png"], on_white(alpha[..., :3], alpha[..., 3:]), atol=0.51)
    np.testing.assert_allclose(at["sixteen.png"], np.repeat(deep[..., None] / 257, 3, 2), rtol=1e-6)
    assert read(tmp_path, size=(10, 12)).images.shape == (7, 10, 12, 3)
    at = dict(zip(found.ids, read(tmp_path, size=(32, 32, 1)).images, strict=True))
    np.testing.assert_allclose(at["sixteen.png"], deep / 257, rtol=1e-6)
    np.testing.assert_array_equal(at["colour.png"], np.asarray(image.fromarray(colour).convert("L").resize((32, 32), image.Resampling.BILINEAR)))


def test_grey_images_can_be_read_as_colours(tmp_path):
    pixels = noise(6, 5)
    image.fromarray(pixels).save(tmp_path / "a.png")
    np.testing.assert_array_equal(read(tmp_path, size=(6, 5, 3)).images[0], np.repeat(pixels[..., None], 3, 2))
    for size in ((6,), (6, 5, 2), (0, 5), (6, 5, 3, 1)):
        with pytest.raises(ValueError, match=r"needed: \(height, width\) or \(height, width, 1 or 3\)"):
            read(tmp_path, size=size)


def test_sixteen_bits_alone_stay_grey_and_images_are_turned_upright(tmp_path):
    deep = noise(8, 6, high=65536, dtype=np.uint16)
    image.fromarray(deep).save(tmp_path / "a.tif")
    np.testing.assert_allclose(read(tmp_path).images[0], deep / 257, rtol=1e-6)
    (tmp_path / "a.tif").unlink()
    pixels, exif = noise(8, 6), image.Exif()
    exif[0x0112] = 6  # the camera was held a quarter turn to the side
    image.fromarray(pixels).save(tmp_path / "a.png", exif=exif)
    np.testing.assert_array_equal(read(tmp_path).images[0], np.rot90(pixels, -1))


def test_sixteen_bits_keep_all_of_them_on_the_scale_of_bytes(tmp_path):
    every = np.arange(65536, dtype=np.uint16).reshape(256, 256)
    image.fromarray(every).save(tmp_path / "b.png")
    found = read(tmp_path, size=(256, 256))
    assert found.images.dtype == np.float32 and found.max_value == 255
    np.testing.assert_array_equal(np.rint(found.images[0] * 257), every)
    assert prepare(found, size=(64, 64)).samples.max() <= 1
    bytes_ = noise(256, 256)
    for name, pixels in {"a": bytes_, "c": bytes_.astype(np.uint16) * 257}.items():
        image.fromarray(pixels).save(tmp_path / f"{name}.png")
    mixed = read(tmp_path, size=(256, 256)).images
    np.testing.assert_array_equal(mixed[0], bytes_)
    np.testing.assert_array_equal(mixed[2], bytes_)
    small = read(tmp_path, size=(100, 90)).images
    np.testing.assert_allclose(small[2], small[0], atol=1.01)  # bytes are rounded twice on their way
    assert small.min() >= 0 and small.max() <= 255
    image.fromarray(np.full((9, 9), 70_000, np.int32)).save(tmp_path / "d.tif")
    with pytest.raises(DataError, match=r"d\.tif has values 70000\.\.70000; needed: 0\.\.65535"):
        read(tmp_path)


def test_a_model_takes_images_of_other_bits_than_it_was_fitted_on(tmp_path):
    """A dim signal: 12 bits in files of 16, of which 8 bits would keep 16 values."""
    row = np.indices((8, 8))[0]
    signals = [500 + 400 * (row // 2 % 2 if i % 2 else row // 4) + noise(8, 8, high=100, dtype=np.uint16) for i in range(40)]
    for folder in ("deep", "more", "bytes"):
        (tmp_path / folder).mkdir()
    for i, pixels in enumerate(signals):
        image.fromarray(pixels.astype(np.uint16)).save(tmp_path / "deep" / f"{i:02d}.png")
        image.fromarray(np.rint(pixels / 257).astype(np.uint8)).save(tmp_path / "bytes" / f"{i:02d}.png")
        image.fromarray(pixels.astype(np.uint16)).save(tmp_path / "more" / f"{i:02d}.tif")
    model = reclust.IDEC(2, representation=reclust.Autoencoder(hidden=(16,)), pretrain_epochs=30, epochs=2, intervention=None, random_state=0,
                         device="cpu")
    labels = model.fit(tmp_path / "deep").labels_
    assert reclust.metrics.accuracy(np.arange(40) % 2, labels) == 1
    model.save(tmp_path / "m.reclust")
    for folder in ("deep", "more", "bytes"):
        assert (reclust.load(tmp_path / "m.reclust").predict(tmp_path / folder) == labels).all()


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P", "L", "RGB"])
def test_what_is_transparent_is_white(mode, tmp_path):
    """Whatever is stored under it; what is half transparent lies on white too."""
    colour, half, none = (40, 80, 200), 128, (0, 0, 0)
    made = image.new("RGBA", (3, 1), (*colour, 255))
    made.putpixel((1, 0), (*none, 0))
    made.putpixel((2, 0), (*colour, half))
    if mode == "LA":
        made = made.convert("LA")
    elif mode != "RGBA":  # one value stands for what is transparent, and nothing is half so
        made = image.new("RGB", (3, 1), colour)
        made.putpixel((1, 0), none)
        made = made.convert(mode, palette=image.Palette.ADAPTIVE) if mode == "P" else made.convert(mode)
    keyed = {"P": made.getpixel((1, 0)), "L": 0, "RGB": none}
    made.save(tmp_path / "a.png", **({"transparency": keyed[mode]} if mode in keyed else {}))
    found = read(tmp_path).images[0, 0].astype(float).reshape(3, -1)
    seen = np.array(image.new("RGB", (1, 1), colour).convert("L" if mode in ("LA", "L") else "RGB"), float).reshape(-1)
    expected = [seen, 255 + 0 * seen, seen if mode in keyed else on_white(seen, half)]
    np.testing.assert_allclose(found, expected, atol=1)


@pytest.mark.parametrize("suffix", ["gif", "tif", "webp", "png"])
def test_only_the_first_page_is_read_and_that_is_said_once(suffix, tmp_path):
    pages = [image.fromarray(noise(8, 8, 3)) for _ in range(3)]
    for name in "bc":
        pages[0].save(tmp_path / f"{name}.{suffix}", save_all=True, append_images=pages[1:], **({"lossless": True} if suffix == "webp" else {}))
    pages[0].save(tmp_path / "a.png")
    with pytest.warns(ReclustWarning, match=rf"2 of 3 images in .* only the first is read, such as b\.{suffix}\.") as caught:
        found = read(tmp_path)
    assert len(caught) == 1 and len(found) == 3
    np.testing.assert_array_equal(found.images[1], np.asarray(pages[0]) if suffix != "gif" else found.images[2])


def test_sixteen_bits_a_colour_are_read_as_eight(tmp_path):
    pixels, chunks = noise(5, 4, 3, high=65536, dtype=">u2"), b""
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    for kind, content in ((b"IHDR", struct.pack(">IIBBBBB", 4, 5, 16, 2, 0, 0, 0)), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")):
        chunks += struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
    (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n" + chunks)
    found = read(tmp_path)
    np.testing.assert_array_equal(found.images[0], pixels // 256)


def test_hidden_files_are_left_alone(tmp_path):
    for folder in ("seen", ".ipynb_checkpoints"):
        (tmp_path / folder).mkdir()
        image.fromarray(noise(4, 4)).save(tmp_path / folder / "a.png")
    (tmp_path / "seen" / "._a.png").write_bytes(b"\0\5\x16\7 what macOS writes beside a file")
    assert read(tmp_path).ids.tolist() == ["seen/a.png"]
    inside = tmp_path / ".ipynb_checkpoints"
    assert read(inside).ids.tolist() == ["a.png"], "a folder that is asked for is read, whatever its name"


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


def test_a_folder_that_may_not_be_opened_is_broken(tmp_path, monkeypatch, caplog):
    (tmp_path / "locked").mkdir()
    image.fromarray(noise(8, 8)).save(tmp_path / "a.png")
    listed = Path.iterdir

    def iterdir(path):
        if path.name == "locked":
            raise PermissionError(path)
        return listed(path)

    monkeypatch.setattr(Path, "iterdir", iterdir)
    with pytest.raises(DataError, match=r"1 of 2 images.*locked is .* a folder that may not be opened"):
        read(tmp_path)
    assert read(tmp_path, on_error="skip").ids.tolist() == ["a.png"] and "locked" in caplog.text


def test_nothing_to_read_is_said(tmp_path):
    with pytest.raises(DataError, match="holds no images"):
        read(tmp_path)
    (tmp_path / "a.png").write_bytes(b"x")
    with pytest.raises(DataError, match="None of the 1 images"):
        read(tmp_path, on_error="skip")
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


def test_linked_folders_are_looked_into_and_links_to_nowhere_are_named(tmp_path):
    for name in ("set/x/1.png", "elsewhere/2.png", "elsewhere/deep/3.png"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        image.fromarray(noise(4, 4)).save(tmp_path / name)
    (tmp_path / "set/y").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "set/x/round").symlink_to(tmp_path / "set")  # a link into itself has no end
    found = read(tmp_path / "set", labels="folder")
    assert found.ids.tolist() == ["x/1.png", "y/2.png", "y/deep/3.png"] and found.labels.tolist() == [0, 1, 1]
    (tmp_path / "set/x/gone.png").symlink_to(tmp_path / "nowhere.png")
    with pytest.raises(DataError, match=r"1 of 4 images.*gone\.png"):
        read(tmp_path / "set")


def test_what_has_other_than_unsigned_bits_is_not_taken_for_them(tmp_path):
    steps = 1000 * np.arange(16, dtype=np.uint16).reshape(4, 4)
    image.fromarray(steps.astype(np.int32) - 1000).save(tmp_path / "scan.tif")
    with pytest.raises(DataError, match=r"None of the 1 images.*values -1000\.\.14000; needed: 0\.\.65535.*array"):
        read(tmp_path)


def test_large_images_are_told_of_unless_their_size_is_chosen(tmp_path):
    for name in "ab":
        image.fromarray(noise(200, 100)).save(tmp_path / f"{name}.png")
    with pytest.warns(ReclustWarning, match=r"200 x 100.*--size 64 64"):
        read(tmp_path)
    assert read(tmp_path, size=(200, 100)).image_shape == (1, 200, 100)


def test_folders_that_link_to_each_other_are_read_once(tmp_path):
    image = pytest.importorskip("PIL.Image")
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
        image.new("L", (3, 3)).save(tmp_path / name / "x.png")
    for name, other in ("ab", "ba", "ac", "ca", "bc", "cb"):
        (tmp_path / name / other).symlink_to(tmp_path / other)
    found = read(tmp_path, labels="folder")
    assert found.ids.tolist() == ["a/x.png", "b/x.png", "c/x.png"] and found.n_clusters == 3


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs here")
@pytest.mark.filterwarnings("ignore::reclust.ReclustWarning")
def test_what_is_no_regular_file_is_not_waited_for(tmp_path, caplog):
    image = pytest.importorskip("PIL.Image")
    (tmp_path / "set").mkdir()
    image.new("L", (3, 3)).save(tmp_path / "set/x.png")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "set/y.png").symlink_to(tmp_path / "pipe")
    with pytest.raises(DataError, match="y.png is no regular file"):
        read(tmp_path / "set")
    assert len(read(tmp_path / "set", on_error="skip")) == 1


@pytest.mark.parametrize("mode", ["I;16", "LA", "RGBA"])
def test_images_take_memory_by_their_depth(mode, tmp_path):
    image.new(mode, (2200, 2200)).save(tmp_path / "x.png")
    taken, found = memory_of(lambda: read(tmp_path))
    assert re.search(r"x\.png has \d+ bytes but claims to hold", str(found)) and taken < 64e6 + 20 * (tmp_path / "x.png").stat().st_size
    (tmp_path / "x.png").unlink()
    for name in map(str, range(20)):
        image.new(mode, (700, 700)).save(tmp_path / f"{name}.png")
    assert read(tmp_path, size=(9, 9)).samples.shape[:3] == (20, 9, 9)
    if mode == "I;16":
        with pytest.raises(DataError, match="but claims to hold"):
            read(tmp_path)


def test_tiles_larger_than_the_image_do_not_unpack(tmp_path):
    content, side = zlib.compress(bytes(1024**2)), 1024
    tags = [(256, 64), (257, 64), (258, 8), (259, 8), (262, 1), (277, 1), (322, side), (323, side), (324, 8), (325, len(content))]
    content += b"\0" * (len(content) % 2)
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags)
    file = b"II*\0" + struct.pack("<I", 8 + len(content)) + content + struct.pack("<H", len(tags)) + entries + bytes(4)
    (tmp_path / "x.tif").write_bytes(file)
    assert read(tmp_path).samples.shape[1:3] == (64, 64)
    (tmp_path / "x.tif").write_bytes(file.replace(struct.pack("<HHII", 322, 4, 1, side), struct.pack("<HHII", 322, 4, 1, 2**20)))
    with pytest.raises(DataError, match="claims to hold"):
        read(tmp_path)
