
// Keeps a live page up to date: told of a newer state, it asks for the page and changes what differs.
const SCRIPT = `script[src="${new URL(import.meta.url).pathname}"]`;
const own = document.querySelector(SCRIPT);
// Under a policy that does not name it, this ends the script, and the browser says why.
const policy = window.trustedTypes?.createPolicy("millpond", { createHTML: (text) => text });
// A stream without a byte for two and a half heartbeats is dead, or something keeps it back.
const SILENCE = 50000;
const POLL = 20000;
let source, watch, again, polling, polls = 0, silences = 0, heard = 0;
let asking, isAsking = false, wanted = false, failures = 0;
let isGone = false, returns = 0, leaving = 0;
// The page as the server has written it, once it was asked for.
let known;

// In development: the state of the site's files that this page shows.
const dev = document.querySelector(`${SCRIPT}[data-state]`)?.dataset;

const isHidden = () => document.visibilityState === "hidden";
const page = () => location.pathname + location.search;

function open() {
  close();
  if (isHidden()) return;
  const { tag } = own.dataset;
  let query = tag ? `page=${encodeURIComponent(page())}&seen=${tag}` : "";
  if (dev) query += `&state=${dev.state}`;
  source = new EventSource(`${location.origin}/.millpond/live?${query}`);
  heard = 0;
  // A page in development that is not live hears no heartbeats.
  source.onopen = () => (heard = tag && Date.now());
  source.addEventListener("beat", hears);
  source.onmessage = (event) => {
    hears();
    const [within, change] = event.data.split("\n");
    if (change && put(JSON.parse(change), event.lastEventId)) return;
    // The server says within how many milliseconds all who look are to ask.
    want(Math.random() * within);
  };
  source.addEventListener("reload", () => {
    close();
    // After a form this would send it again.
    dev.post ?? location.reload();
    document.querySelector(".changed")?.removeAttribute("hidden");
  });
  source.addEventListener("gone", () => {
    close();
    isGone = true;
    want(0);
  });
  source.onerror = () => {
    if (source?.readyState !== EventSource.CLOSED) return;
    close();
    again = setTimeout(open, 5000 + Math.random() * 5000);
  };
  watch = setInterval(() => {
    if (!heard || Date.now() - heard < SILENCE) return;
    if (silences++ < 1) return open();
    close();
    if (polling) return;
    console.info("millpond: polling");
    // Now and then a stream is tried again.
    polling = setInterval(() => (++polls % 15 ? want(0) : source || open()), POLL);
  }, 5000);
}

// Shows the page with a change, if that is of the page that is shown.
function put({ text, from, to, length, of }, tag) {
  // Of another length is a text in which something between here and the server has changed something.
  if (isAsking || of !== own.dataset.tag || known?.length !== length) return;
  const next = known.replaceAll(of, tag);
  return show(next.slice(0, from) + text + next.slice(to));
}

function hears() {
  heard = Date.now();
  silences = returns = 0;
  clearInterval(polling);
  polling = undefined;
}

function close() {
  source?.close();
  source = undefined;
  clearInterval(watch);
  clearTimeout(again);
}

// Asks for the page in so many milliseconds, or when the answer that is on its way is there.
function want(within) {
  wanted = true;
  asking ??= setTimeout(update, within);
}

async function update() {
  asking = undefined;
  // Shown again, a page opens a stream, and is told.
  if (isAsking || isHidden()) return;
  if (Date.now() < leaving) return want(1000);
  isAsking = true;
  wanted = false;
  let isDone = false;
  try {
    const answer = await fetch(location.origin + page(), {
      headers: { "If-None-Match": `"${own.dataset.tag}"`, Accept: "text/html" },
      cache: "no-store",
      redirect: "manual",
    });
    if (answer.status === 200) isDone = show(await answer.text());
    else if (answer.type === "opaqueredirect" || [401, 403, 404, 410].includes(answer.status)) return lose();
    else isDone = answer.status === 304;
  } catch {
    // It is tried again.
  }
  isAsking = false;
  failures = isDone ? 0 : failures + 1;
  if (!isDone) return want(Math.min(60000, 1000 * 2 ** failures) * (0.5 + Math.random() / 2));
  if (wanted) want(0);
  if (!isGone) return;
  // The page is there, but no stream of it: that is tried less and less often.
  isGone = false;
  again = setTimeout(open, Math.min(300000, 1000 * 2 ** returns++));
}

// The page is not this visitor's any more. What was typed stays until it is sent, or the page is left.
function lose() {
  close();
  const isKept = !document.dispatchEvent(new Event("millpond:gone", { cancelable: true }));
  if (!isKept && !controls().some(isChanged)) location.reload();
}

const controls = () => [...document.querySelectorAll("input, textarea, select")];

function isChanged(control) {
  if (control.localName === "select") {
    const all = [...control.options];
    const chosen = all.some((option) => option.defaultSelected);
    if (!chosen && !control.multiple) return control.selectedIndex > 0;
    return all.some((option) => option.selected !== option.defaultSelected);
  }
  if (control.type === "hidden") return false;
  // Their value is never typed.
  if (/box|radio/.test(control.type)) return control.checked !== control.defaultChecked;
  return control.value !== control.defaultValue;
}

// Shows the page as it is now; false if not yet.
function show(text) {
  if (Date.now() < leaving) return false;
  const next = new DOMParser().parseFromString(policy?.createHTML(text) ?? text, "text/html");
  const tag = next.querySelector(SCRIPT)?.dataset.tag;
  // Another page, or one of another version of the script.
  if (!tag) {
    lose();
    return true;
  }
  // What the visitor has changed, and what belongs to it: the other fields of a form, such as its version, and
  // the other buttons of a group.
  const changed = new Set();
  for (const control of controls().filter(isChanged)) {
    changed.add(control).add(control.form ?? control);
    if (control.type === "radio") changed.add(groupOf(control));
  }
  morphDocument(document, next, {
    preserveChanges: true,
    beforeNodeVisited: (from, to) => !isKept(from, to),
    beforeNodeRemoved: (node) => !node.dataset || !("liveKeep" in node.dataset),
    beforeAttributeUpdated: (element, name) => !isHeld(element, name, changed),
  });
  own.dataset.tag = tag;
  known = text;
  document.dispatchEvent(new Event("millpond:changed"));
  return true;
}

const groupOf = (radio) => `${radio.form?.id || radio.form?.action} ${radio.name}`;

function isHeld(element, name, changed) {
  if (name === "open") return true;
  if (name === "value") return element.type === "hidden" && changed.has(element.form);
  if (name === "checked") return changed.has(element) || changed.has(groupOf(element));
  return name === "selected" && changed.has(element.closest("select"));
}

function isKept(from, to) {
  if (!from.dataset) return false;
  if ("liveKeep" in from.dataset || from === own) return true;
  // What plays, plays on.
  return (from.localName === "video" || from.localName === "audio") && from.src === to.src;
}

// Nothing changes under a visitor who is on the way to another page.
const leave = (event) => event.defaultPrevented || (leaving = Date.now() + 5000);
addEventListener("submit", (event) => setTimeout(() => leave(event)));
addEventListener("beforeunload", leave);
addEventListener("pagehide", close);
addEventListener("pageshow", (event) => {
  leaving = 0;
  if (event.persisted) open();
});
document.addEventListener("visibilitychange", () => (isHidden() ? close() : source || open()));
// A machine that wakes up, or has its network back.
addEventListener("online", open);
open();
