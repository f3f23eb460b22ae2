# SPDX-License-Identifier: MIT
"""A headless Chromium, driven through chromedriver by the W3C WebDriver protocol over plain HTTP."""

import base64
import http.client
import json
import re
import shutil
import subprocess
import tempfile
import time

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--disable-dev-shm-usage", "--force-device-scale-factor=1"]


class Browser:
    """One browser with a profile of its own; use it as a context."""

    def __init__(self, width=1400, height=900, dark=False):
        self.profile = tempfile.mkdtemp(prefix="graftrace-chromium-")
        self.driver = subprocess.Popen(
            ["chromedriver", "--port=0"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True)
        self.session = None
        self.connection = None
        try:
            for line in self.driver.stdout:
                port = re.search(r"started successfully on port (\d+)", line)
                if port:
                    break
            else:
                raise RuntimeError("chromedriver did not start")
            self.connection = http.client.HTTPConnection("127.0.0.1", int(port[1]), timeout=60)
            options = {"args": [*FLAGS, f"--user-data-dir={self.profile}",
                                f"--window-size={width},{height}",
                                *(["--force-dark-mode"] if dark else [])]}
            self.session = self.ask("POST", "/session", {
                "capabilities": {"alwaysMatch": {
                    "browserName": "chrome", "goog:chromeOptions": options,
                    "goog:loggingPrefs": {"browser": "ALL"}}}}, of_session=False)["sessionId"]
        except BaseException:
            self.close()
            raise

    def ask(self, method, path, body=None, of_session=True):
        """One command; its value, or RuntimeError with the driver's words."""
        if of_session:
            path = f"/session/{self.session}{path}"
        self.connection.request(method, path, json.dumps(body if body is not None else {})
                                if method == "POST" else None,
                                {"Content-Type": "application/json"})
        response = self.connection.getresponse()
        value = json.loads(response.read())["value"]
        if response.status != 200:
            raise RuntimeError(f"{method} {path}: {value['error']}: {value['message']}")
        return value

    def open(self, path):
        self.ask("POST", "/url", {"url": path.resolve().as_uri()})

    def run(self, script, *arguments):
        """The body of a function, and what it returns."""
        return self.ask("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def wait_for(self, script, *arguments, seconds=60):
        """Waits until the script returns something true, and returns that."""
        end = time.monotonic() + seconds
        while True:
            value = self.run(script, *arguments)
            if value:
                return value
            assert time.monotonic() < end, f"not within {seconds} s: {script}"
            time.sleep(0.05)

    def find(self, selector):
        return self.ask("POST", "/element", {"using": "css selector", "value": selector})[ELEMENT]

    def act(self, selector, action, body=None):
        """What the driver does to an element; found anew where the page has drawn it anew meanwhile."""
        for again in reversed(range(20)):
            try:
                return self.ask("POST", f"/element/{self.find(selector)}/{action}", body)
            except RuntimeError as error:
                if "stale element" not in str(error) or not again:
                    raise

    def click(self, selector):
        """A real click, at the element's middle; fails if something else lies there."""
        self.act(selector, "click")

    def press_enter(self, selector):
        self.act(selector, "value", {"text": "\ue007"})

    def double_click(self, selector):
        """Two presses at the element's middle, the second of which is said to be one of a pair: else
        the time between them would tell, which a busy machine makes long."""
        x, y, same = self.run("""
            const element = document.querySelector(arguments[0]);
            element.scrollIntoView({block: "nearest"});
            const box = element.getBoundingClientRect();
            const x = box.x + box.width / 2, y = box.y + box.height / 2;
            return [x, y, element.contains(document.elementFromPoint(x, y))];""", selector)
        assert same, f"something else lies on {selector}"
        for press in (1, 2):
            for event in ("mousePressed", "mouseReleased"):
                self.ask("POST", "/goog/cdp/execute", {
                    "cmd": "Input.dispatchMouseEvent",
                    "params": {"type": event, "x": x, "y": y, "button": "left", "clickCount": press}})

    def type(self, selector, text):
        self.act(selector, "clear")
        if text:
            self.act(selector, "value", {"text": text})

    def log(self):
        """What the console said since the last call: the texts of warnings and errors."""
        return [entry["message"] for entry in self.ask("POST", "/se/log", {"type": "browser"})
                if entry["level"] in ("WARNING", "SEVERE")]

    def screenshot(self, path):
        path.write_bytes(base64.b64decode(self.ask("GET", "/screenshot")))

    def close(self):
        if self.session is not None:
            try:
                self.ask("DELETE", "")
            except (OSError, RuntimeError, http.client.HTTPException):
                pass
        if self.connection is not None:
            self.connection.close()
        self.driver.terminate()
        try:
            self.driver.wait(10)
        except subprocess.TimeoutExpired:
            self.driver.kill()
            self.driver.wait()
        self.driver.stdout.close()
        shutil.rmtree(self.profile, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
