// The token of the daemon. `stint serve` and `stint open` give it in the fragment of the address, which no browser sends to a server.
// It moves to the session storage of the tab, and leaves the address before the first request.

const kKey = "stint.token";

/** Takes the token out of the address; false: there is none in it. */
export function takeToken(): boolean {
  const given = /^#(.*?)[?&]?token=([A-Za-z0-9_.~-]+)$/.exec(location.hash);
  if (!given) return false;
  sessionStorage.setItem(kKey, given[2] ?? "");
  history.replaceState(null, "", `${location.pathname}${given[1] ? `#${given[1]}` : ""}`);
  return true;
}
takeToken(); // before any module reads the address

export function token(): string {
  return sessionStorage.getItem(kKey) ?? "";
}

export function setToken(value: string): void {
  sessionStorage.setItem(kKey, value);
}
