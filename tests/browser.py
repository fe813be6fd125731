"""A headless Chromium for tests, over the pipe that it offers to debuggers: JSON messages, each ended by a zero byte."""

import base64
import json
import os
import select
import shutil
import subprocess
import time

NAMES = ("chromium", "chromium-browser", "google-chrome")


def executable():
    """The browser's path, None where there is none."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Browser:
    """One page at a time. `errors` collects what the page logged as errors or threw."""

    def __init__(self, folder):
        mine_in, theirs_out = os.pipe()
        theirs_in, mine_out = os.pipe()
        command = [executable(), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                   "--remote-debugging-pipe", f"--user-data-dir={folder}", "about:blank"]

        def connect():
            """The browser reads messages from descriptor 3 and writes them to 4."""
            reading, writing = os.dup(theirs_in), os.dup(theirs_out)  # these may be 3 and 4 themselves, the wrong way round
            os.dup2(reading, 3), os.dup2(writing, 4)

        self._process = subprocess.Popen(command, preexec_fn=connect, close_fds=False, stdin=subprocess.DEVNULL,
                                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(theirs_in), os.close(theirs_out)
        self._in, self._out, self._buffer, self._last = mine_in, mine_out, b"", 0
        self._session, self.errors, self._events = None, [], []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self):
        self._session = None
        try:
            self.call("Browser.close")
            self._process.wait(10)
        except (OSError, RuntimeError, TimeoutError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        os.close(self._in), os.close(self._out)

    def call(self, method, **parameters):
        self._last += 1
        message = {"id": self._last, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while (answer := self._read()).get("id") != self._last:
            pass
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def _read(self, seconds=30):
        end = time.monotonic() + seconds
        while b"\0" not in self._buffer:
            if not select.select([self._in], [], [], max(0, end - time.monotonic()))[0]:
                raise TimeoutError("The browser says nothing.")
            self._buffer += os.read(self._in, 1 << 16) or self._ended()
        message, _, self._buffer = self._buffer.partition(b"\0")
        told = json.loads(message)
        self._note(told)
        return told

    def _ended(self):
        raise RuntimeError("The browser ended.")

    def _note(self, told):
        method, parameters = told.get("method"), told.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(parameters["exceptionDetails"])[:500])
        elif method == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
            self.errors.append(parameters["entry"]["text"])
        elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
            self.errors.append(json.dumps(parameters["args"])[:500])
        elif method == "Network.requestWillBeSent" and not parameters["request"]["url"].startswith(("file:", "data:", "about:")):
            self.errors.append(f"The page asked for {parameters['request']['url']}")
        elif method == "Page.javascriptDialogOpening":
            self.errors.append(f"The page opened a dialog: {parameters['message']}")
            self._session and self.call("Page.handleJavaScriptDialog", accept=True)

    def open(self, path, *, width=1200, height=900, dark=False):
        self.errors.clear()
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
                                                          {"name": "prefers-reduced-motion", "value": "reduce"}])
        self.call("Page.navigate", url=path.absolute().as_uri())
        for _ in range(200):
            if self.run("document.readyState") == "complete":
                return
            time.sleep(0.02)
        raise TimeoutError(f"{path} did not finish loading.")

    def run(self, script):
        """The value of a JavaScript expression."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"])[:500])
        return answer["result"].get("value")

    def press(self, key):
        code = {"Enter": 13, "Escape": 27, "Tab": 9, "ArrowRight": 39, "ArrowLeft": 37, " ": 32}[key]
        text = {"text": "\r"} if key == "Enter" else {"text": " "} if key == " " else {}
        for kind, extra in (("keyDown", text), ("keyUp", {})):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **extra)

    def move(self, x, y):
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def screenshot(self, path, *, whole=True):
        picture = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole, **({"clip": {
            "x": 0, "y": 0, "scale": 1, **self.run("({width: innerWidth, height: document.documentElement.scrollHeight})")}} if whole else {}))
        path.write_bytes(base64.b64decode(picture["data"]))
