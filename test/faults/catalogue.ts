// The faults that the provider and the service stand, by the ids that tests and comments name. docs/faults.md is made from it.

/** One thing that goes wrong. */
export interface Fault {
  /** What goes wrong. */
  readonly wrong: string;
  /** What is promised all the same. */
  readonly promised: string;
  /** Whether users lose most by it: such a fault is tried with the real CLI as well. */
  readonly decisive?: boolean;
}

/** Every fault by its id. */
export const faults = {
  F01: {
    wrong: "The connection ends after a create was applied and before its answer came.",
    promised: "What was made is found by its tag and taken. There is exactly one, and no create is sent blindly again.",
    decisive: true,
  },
  F02: {
    wrong: "The connection ends before a create was applied.",
    promised: "The create is sent once more, and there is exactly one.",
  },
  F03: {
    wrong: "A create is answered 502, 503 or 504, after it was applied or before.",
    promised: "The service is asked which of the two it was. Then it goes on as after F01 or F02.",
    decisive: true,
  },
  F04: {
    wrong: "429 with `Retry-After`: seconds, a date, zero, a negative number, or very long.",
    promised:
      "Nothing is sent before that time. A wait beyond the deadline fails at once and names the limit. Other resources go on.",
  },
  F05: {
    wrong: "429 without a word, for every request.",
    promised: "Pauses grow and differ, all requests share their retries, and the run ends.",
  },
  F06: {
    wrong: "Another client holds the Machine's lease during an update or deletion.",
    promised:
      "The provider waits for the lease until the deadline, and never takes it away. The error names its holder and when it ends.",
  },
  F07: {
    wrong: "Our lease ends during an update, because the process or the network was slow.",
    promised:
      "Leases are renewed early. Once one may have ended nothing is written under it; a new one begins with a look.",
  },
  F08: {
    wrong: "A lease cannot be given back, or the provider dies while it holds one.",
    promised: "The next run waits until the lease has ended, says so, and goes on.",
    decisive: true,
  },
  F09: {
    wrong: "A wait ends without an answer: after 60 seconds, with 408 or 504, empty, or truncated.",
    promised: "The wait continues where it ended, until the deadline. A create that is not ready by then keeps its id.",
  },
  F10: {
    wrong: "A Machine fails or stops instead of starting.",
    promised:
      "The run ends at once, with the last event as the reason. The id is kept, and the next run repairs in place.",
    decisive: true,
  },
  F11: {
    wrong: "A Machine was destroyed or replaced outside.",
    promised: "A refresh forgets it once its absence is proved. The next run makes a new one.",
  },
  F12: {
    wrong: "A configuration was changed outside.",
    promised: "A refresh shows the difference. An update overwrites nothing unseen.",
  },
  F13: {
    wrong: "What was just made is not found yet.",
    promised: "A 404 is asked again for a few seconds after the create, and counts as gone only later.",
  },
  F14: {
    wrong: "A list is empty or lacks what is there.",
    promised: "A list proves no absence: what it lacks is asked for by its id.",
  },
  F15: {
    wrong: "A read shows an older version than one that was already seen.",
    promised: "The later version counts, and the read is repeated for a few seconds.",
  },
  F16: {
    wrong: "Pages are empty, repeat entries, change their order, or never end.",
    promised:
      "The cursor alone says whether more follows. Entries are taken once, and a cursor that returns ends the list.",
  },
  F17: {
    wrong: "The user presses ^C during a create or update.",
    promised: "Waits end, requests under way are finished. The id is in the state, and the lease is given back.",
    decisive: true,
  },
  F18: {
    wrong: "The CLI or the provider is killed at any step.",
    promised:
      "The next run goes on with what the killed one made. Nothing is made twice, and nothing of others is deleted.",
    decisive: true,
  },
  F19: {
    wrong: "The answer to an update or deletion is lost.",
    promised: "A look at the object says whether it took effect, before anything is sent again.",
  },
  F20: {
    wrong: "A deletion is answered, and the Machine stays a while or still runs.",
    promised: "The provider waits until the Machine is gone. It uses force only where the program allows it.",
  },
  F21: {
    wrong: "The token is revoked or expires during a run.",
    promised: "Nothing is sent again. The message names where the token is from and never its value.",
    decisive: true,
  },
  F22: {
    wrong: "TLS cannot be trusted: self-signed, expired, another host, or no TLS at all.",
    promised: "The request fails fast with the reason and the way out. The check is never left out.",
  },
  F23: {
    wrong: "The service cannot be reached: no address, no listener, IPv6 alone, a proxy.",
    promised:
      "Requests that arrived nowhere are repeated. The message names host and port, and proxies are used as configured.",
  },
  F24: {
    wrong: "An answer is malformed, truncated, empty, a web page, or has unknown fields.",
    promised:
      "A read is sent once more, then fails in words with a short excerpt. A create is in doubt. Unknown fields are kept.",
  },
  F25: {
    wrong: "An answer is too large or has no end: bodies, packed bodies, headers.",
    promised: "It is cut at a limit, and memory stays bounded.",
  },
  F26: {
    wrong: "An answer comes too slowly, or stops in the middle.",
    promised: "Every request has a time limit that no trickle of bytes extends.",
  },
  F27: {
    wrong: "Thousands of connections to the service are idle or send slowly.",
    promised: "They are closed in time, and other clients are served as before.",
  },
  F28: {
    wrong: "The service is killed at any write.",
    promised: "It starts again with everything it has answered, nothing by halves, and timers that go on.",
  },
  F29: {
    wrong: "The disk is full or read-only, the data is damaged, newer, or in use by another service.",
    promised: "Changes are 503 and reads go on. A start that cannot be safe is refused, with the way out.",
  },
  F30: {
    wrong: "The clock jumps, goes backwards, or the computer sleeps.",
    promised: "Leases and deadlines last no longer for it, ids keep their order, and no time is negative.",
  },
  F31: {
    wrong: "A region is full, or the organization's quota is used up.",
    promised:
      "The error names the region and others with room. Fallback regions are tried, and nothing is left behind.",
  },
  F32: {
    wrong: "A Postgres cluster fails, takes too long, or is deleted meanwhile.",
    promised: "404 and 410 count as deleted. A cluster that failed or is not ready in time keeps its id.",
  },
  F33: {
    wrong: "A secret could show up in a log, state, difference, message or trace.",
    promised: "It shows up nowhere in clear text.",
    decisive: true,
  },
  F34: {
    wrong: "A name, id or hostname holds a path that leads elsewhere, or very much text.",
    promised: "It is refused before it is sent, and refused by the service. No file is ever named after it.",
  },
  F35: {
    wrong: "A token, nonce or value holds text that would become a header or a query.",
    promised: "It is refused before it is sent, or stays one value.",
  },
  F36: {
    wrong: "A server redirects elsewhere, or a web page or a foreign host name reaches the local service.",
    promised: "Redirects are not followed and no token leaves. The service takes its own names alone.",
  },
  F37: {
    wrong: "Two runs work on the same App at once.",
    promised: "Leases put their updates in order. No update is lost, and neither takes what the other made.",
    decisive: true,
  },
  F38: {
    wrong: "A program is very large, or its values are not known yet.",
    promised:
      "A preview writes nothing, 5,000 resources are compared without a request, and a limit is one clear error.",
  },
  F39: {
    wrong: "A run that renames a resource does not finish; a later one deletes the old resource.",
    promised: "What the new one claims by name stays: a secret, attachment, metadata key, certificate or address.",
    decisive: true,
  },
  F40: {
    wrong: "What is guarded is replaced by force, and a plain run follows.",
    promised: "The original is there in every later run, until the program says otherwise.",
    decisive: true,
  },
  F41: {
    wrong: "An App or cluster is renamed or replaced over guarded resources in it.",
    promised: "The preview refuses it and names both. A stack in that state can go back.",
    decisive: true,
  },
  F42: {
    wrong: "One run goes to a wrong endpoint or organization, and the next to the right one.",
    promised: "Nothing is forgotten and nothing is replaced.",
    decisive: true,
  },
  F43: {
    wrong: "The engine sends a create again after it reported that an initialization failed.",
    promised: "It goes on with the same object. None is forgotten, and there are never two.",
  },
  F44: {
    wrong: "Others change metadata of ours, and an update of something else follows.",
    promised: "The update is refused and names the key, as for a setting.",
    decisive: true,
  },
  F45: {
    wrong: "A stack of the same project and name exists in another backend or organization.",
    promised: "Its objects are never offered for deletion.",
    decisive: true,
  },
  F46: {
    wrong: "Another client has very large rows, configurations or secrets.",
    promised: "Requests of others take at most half as long again.",
  },
  F47: {
    wrong: "A flood without a token: long paths, silent and half-open connections, slow bodies.",
    promised: "Memory is bounded, descriptors are given back, and others are served.",
  },
  F48: {
    wrong: "One request is expensive to judge: huge maps, lists or texts.",
    promised: "It is refused before the work begins, and no other client waits for it.",
  },
  F49: {
    wrong: "Text of others holds control characters, wherever it is printed.",
    promised: "It is escaped and cut.",
  },
} as const satisfies Record<string, Fault>;
