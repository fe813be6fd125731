"""`reclust data`."""

import json

from reclust.cli import main


def test_data_sets_are_listed_and_checked(tmp_path, capsys):
    assert main(["data", "list", "--folder", str(tmp_path)]) == 0
    assert "embedded" in capsys.readouterr().out
    assert main(["data", "check", "digits", "--folder", str(tmp_path)]) == 0
    capsys.readouterr()
    assert main(["data", "check", "digits", "usps", "--folder", str(tmp_path), "--json"]) == 1
    assert [row["state"] for row in json.loads(capsys.readouterr().out)] == ["complete", "missing"]
