"""Drives Debian's Chromium from Python's standard library: the DevTools protocol over two pipes, so no port and no WebSocket.

    with Browser() as browser:
        page = browser.open("http://127.0.0.1:7717/")
        page.wait("document.querySelector('h1')")
        page.click("link", "Runs")
"""
import base64
import contextlib
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

PROGRAM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), "")
ANSWER_SECONDS = 60
WAIT_SECONDS = 60  # a busy machine takes long for everything; only a failing test waits so long
FIND_SECONDS = 20
# Reports what a test could not see otherwise: refusals of the policy, and exceptions.
WATCH = """window.__faults = [];
addEventListener("securitypolicyviolation", (e) => __faults.push(`policy: ${e.violatedDirective} ${e.blockedURI}`));
addEventListener("error", (e) => __faults.push(`error: ${e.message}`));
addEventListener("unhandledrejection", (e) => __faults.push(`rejection: ${e.reason}`));"""
KEYS = {"Tab": 9, "Enter": 13, "Escape": 27, "ArrowDown": 40, "ArrowUp": 38, "Backspace": 8, " ": 32}


def skip_without_chromium():
    """Ends a test script where no Chromium is installed; the test is then counted as skipped."""
    if not PROGRAM:
        print("SKIPPED: no chromium: ./dev setup browser")
        sys.exit(0)


class Failed(Exception):
    """The browser refused a command, or a script of the page threw."""


class Browser:
    def __init__(self, *flags):
        self.profile = tempfile.mkdtemp(prefix="stint-chromium-")
        to_browser, ours_out = os.pipe()
        ours_in, from_browser = os.pipe()
        # Above the numbers that they become, so that neither overwrites the other.
        theirs = [os.dup(fd) if fd > 9 else os.dup2(fd, 20 + fd) for fd in (to_browser, from_browser)]

        def wire():
            os.dup2(theirs[0], 3)
            os.dup2(theirs[1], 4)

        words = [PROGRAM, "--headless=new", "--remote-debugging-pipe", f"--user-data-dir={self.profile}", "--no-first-run", "--disable-gpu",
                 "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions", "--disable-dev-shm-usage",
                 "--hide-scrollbars", "--force-color-profile=srgb", *(["--no-sandbox"] if os.geteuid() == 0 else []), *flags, "about:blank"]
        self.process = subprocess.Popen(words, preexec_fn=wire, pass_fds=(3, 4, *theirs), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, start_new_session=True)
        for fd in {to_browser, from_browser, *theirs}:
            os.close(fd)
        self.out, self.into = os.fdopen(ours_out, "wb", buffering=0), os.fdopen(ours_in, "rb", buffering=0)
        self.answers, self.pages, self.number, self.lock = {}, {}, 0, threading.Lock()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def read(self):
        rest = b""
        while piece := self.into.read(65536):
            *messages, rest = (rest + piece).split(b"\0")
            for message in map(json.loads, messages):
                if "id" in message:
                    self.answers[message["id"]].put(message)
                elif (page := self.pages.get(message.get("sessionId"))) is not None:
                    page.notice(message["method"], message["params"])
        for waiting in list(self.answers.values()):
            waiting.put({"error": {"message": "the browser has ended"}})

    def ask(self, method, session=None, **parameters):
        with self.lock:
            self.number += 1
            number, answer = self.number, queue.Queue()
            self.answers[number] = answer
            message = {"id": number, "method": method, "params": parameters, **({"sessionId": session} if session else {})}
            self.out.write(json.dumps(message).encode() + b"\0")
        try:
            said = answer.get(timeout=ANSWER_SECONDS)
        finally:
            del self.answers[number]
        if "error" in said:
            raise Failed(f"{method}: {said['error']['message']}")
        return said["result"]

    def open(self, url, width=1280, height=900, dark=False):
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = self.pages[session] = Page(self, session)
        for domain in ("Page", "Network", "Runtime", "Accessibility"):
            page.ask(f"{domain}.enable")
        page.ask("Page.addScriptToEvaluateOnNewDocument", source=WATCH)
        page.resize(width, height)
        page.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
                                                          {"name": "prefers-reduced-motion", "value": "reduce"}])
        page.go(url)
        return page

    def close(self):
        with contextlib.suppress(Failed, OSError, queue.Empty):
            self.ask("Browser.close")
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)  # its own session
            self.process.wait()
        self.reader.join(5)
        self.out.close()
        self.into.close()
        shutil.rmtree(self.profile, ignore_errors=True)


class Page:
    def __init__(self, browser, session):
        self.browser, self.session = browser, session
        self.requests = []  # (method, address, headers)

    def notice(self, method, parameters):
        if method == "Network.requestWillBeSent":
            request = parameters["request"]
            self.requests.append((request["method"], request["url"], request["headers"]))

    def ask(self, method, **parameters):
        return self.browser.ask(method, self.session, **parameters)

    def go(self, url):
        said = self.ask("Page.navigate", url=url)
        if "errorText" in said:
            raise Failed(f"{url}: {said['errorText']}")

    def show(self):
        """Makes it the visible tab; the others are hidden then."""
        self.ask("Page.bringToFront")

    def resize(self, width, height):
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)

    def evaluate(self, script):
        said = self.ask("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in said:
            detail = said["exceptionDetails"]
            raise Failed(f"{script}: {detail.get('exception', {}).get('description', detail['text'])}")
        return said["result"].get("value")

    def shows(self, script, seconds):
        """The value that JavaScript takes for true as soon as the script gives one, an element as an empty object; None: not in time."""
        end = time.monotonic() + seconds
        while True:
            with contextlib.suppress(Failed):  # a page that is being loaded
                value = self.evaluate(script)
                if value or isinstance(value, (dict, list)):
                    return value
            if time.monotonic() > end:
                return None
            time.sleep(0.05)

    def wait(self, script, seconds=WAIT_SECONDS):
        value = self.shows(script, seconds)
        if value is None:
            raise AssertionError(f"not within {seconds} s: {script}\n{self.text()[:2000]}")
        return value

    def text(self):
        return self.evaluate("document.body.innerText")

    def faults(self):
        return self.evaluate("window.__faults")

    def find(self, role, name):
        """The node with that role and accessible name, as a screen reader finds it: a little later than it is drawn."""
        end = time.monotonic() + FIND_SECONDS
        while True:
            root = self.ask("DOM.getDocument", depth=0)["root"]["nodeId"]
            found = self.ask("Accessibility.queryAXTree", nodeId=root, role=role, accessibleName=name)["nodes"]
            found = [node for node in found if not node.get("ignored")]
            if found:
                return found[0]["backendDOMNodeId"]
            if time.monotonic() > end:
                raise Failed(f"no {role} is called {name!r}")
            time.sleep(0.05)

    def click(self, role, name):
        handle = self.ask("DOM.resolveNode", backendNodeId=self.find(role, name))["object"]["objectId"]
        self.ask("Runtime.callFunctionOn", objectId=handle, functionDeclaration="function () { this.scrollIntoView({block: 'center'}); this.click(); }")

    def press(self, key):
        text = key if len(key) == 1 else "\r" if key == "Enter" else None
        code = KEYS.get(key, ord(key.upper()[0]))
        facts = {"key": key, "windowsVirtualKeyCode": code, **({"text": text} if text else {})}
        self.ask("Input.dispatchKeyEvent", type="keyDown", **facts)
        self.ask("Input.dispatchKeyEvent", type="keyUp", **facts)

    def type(self, text):
        self.ask("Input.insertText", text=text)

    def screenshot(self, path, whole=True, height_max=4000, scale=1, quality=55):
        """A PNG, or a small WebP, by the name of the file."""
        kind = {"format": "webp", "quality": quality} if str(path).endswith(".webp") else {"format": "png"}
        if whole:
            size = self.ask("Page.getLayoutMetrics")["cssContentSize"]
            clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], height_max), "scale": scale}
            data = self.ask("Page.captureScreenshot", clip=clip, captureBeyondViewport=True, **kind)["data"]
        else:
            data = self.ask("Page.captureScreenshot", **kind)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))
