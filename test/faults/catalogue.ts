// The faults that the provider and the service must survive, by the ids that tests and comments use. docs/faults.md is
// generated from it.
import { attacks } from "../attacks/catalogue.ts";
import type { Fault } from "./fault.ts";

/** Every fault by its id. */
export const faults = {
  F01: {
    wrong: "The connection ends after a create was applied and before its answer came.",
    promised:
      "The created object is found by its tag and adopted. There is exactly one, and no create is repeated blindly.",
    decisive: true,
  },
  F02: {
    wrong: "The connection ends before a create was applied.",
    promised: "The create is sent again, and there is exactly one.",
  },
  F03: {
    wrong: "A create is answered 502, 503 or 504, after it was applied or before.",
    promised: "A read shows which of the two it was. The run continues as after F01 or F02.",
    decisive: true,
  },
  F04: {
    wrong: "429 with `Retry-After`: seconds, a date, zero, a negative number, or very long.",
    promised:
      "Nothing is sent before that time. A wait beyond the deadline fails at once and names the limit. Other resources continue.",
  },
  F05: {
    wrong: "429 without `Retry-After`, for every request.",
    promised: "Pauses grow and vary, all requests share their retries, and the run ends.",
  },
  F06: {
    wrong: "Another client holds the Machine's lease during an update or deletion.",
    promised:
      "The provider waits for the lease until the deadline, and never steals it. The error names its holder and its expiry.",
  },
  F07: {
    wrong: "Our lease ends during an update, because the process or the network was slow.",
    promised:
      "Leases are renewed early. Once a lease may have expired, nothing is written under it; a new one begins with a read.",
  },
  F08: {
    wrong: "A lease cannot be released, or the provider dies while it holds one.",
    promised: "The next run reports that it waits until the lease has expired, and then continues.",
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
    promised: "A refresh forgets it once its absence is proved. The next run creates a new one.",
  },
  F12: {
    wrong: "A configuration was changed outside.",
    promised: "A refresh shows the difference. An update overwrites nothing unseen.",
  },
  F13: {
    wrong: "An object that was just created is not found yet.",
    promised: "A 404 is retried for a few seconds after the create, and counts as gone only later.",
  },
  F14: {
    wrong: "A list is empty or incomplete.",
    promised: "A list does not prove absence: an object that it omits is read by its id.",
  },
  F15: {
    wrong: "A read shows an older version than one that was already seen.",
    promised: "The later version counts, and the read is retried for a few seconds.",
  },
  F16: {
    wrong: "Pages are empty, repeat entries, change their order, or never end.",
    promised:
      "Only the cursor decides whether more follows. Entries are returned once, and a repeated cursor ends the list.",
  },
  F17: {
    wrong: "The user presses ^C during a create or update.",
    promised: "Waits end, and requests under way are finished. The id is in the state, and the lease is released.",
    decisive: true,
  },
  F18: {
    wrong: "The CLI or the provider is killed at any step.",
    promised:
      "The next run continues with the objects of the killed one. Nothing is created twice, and no object of others is deleted.",
    decisive: true,
  },
  F19: {
    wrong: "The answer to an update or deletion is lost.",
    promised: "A read shows whether the request was applied, before anything is sent again.",
  },
  F20: {
    wrong: "A deletion is answered, but the Machine remains for a while or still runs.",
    promised: "The provider waits until the Machine is gone. It uses force only where the program allows it.",
  },
  F21: {
    wrong: "The token is revoked or expires during a run.",
    promised: "Nothing is sent again. The message names the token's source and never its value.",
    decisive: true,
  },
  F22: {
    wrong: "A TLS certificate is self-signed, expired or for another host, or there is no TLS.",
    promised: "The request fails at once with the reason and the remedy. The check is never skipped.",
  },
  F23: {
    wrong: "The service cannot be reached: no address, a closed port, IPv6 only, a proxy.",
    promised:
      "Requests that did not arrive are retried. The message names host and port, and proxies are used as configured.",
  },
  F24: {
    wrong: "An answer is malformed, truncated, empty, a web page, or has unknown fields.",
    promised:
      "A read is sent once more, then fails with a short excerpt. A create is ambiguous. Unknown fields are kept.",
  },
  F25: {
    wrong: "An answer is too large or endless: bodies, compressed bodies, headers.",
    promised: "It is truncated at a limit, and memory stays bounded.",
  },
  F26: {
    wrong: "An answer arrives too slowly, or stops in the middle.",
    promised: "Every request has a time limit that occasional bytes do not extend.",
  },
  F27: {
    wrong: "Thousands of connections to the service are idle or send slowly.",
    promised: "They are closed in time, and other clients are not affected.",
  },
  F28: {
    wrong: "The service is killed at any write.",
    promised: "It restarts with every change it has confirmed, without partial changes, and timers continue.",
  },
  F29: {
    wrong: "The disk is full or read-only, the data is damaged, newer, or in use by another service.",
    promised:
      "Changes are answered with 503, and reads continue. An unsafe start is refused, and the message has the remedy.",
  },
  F30: {
    wrong: "The clock jumps, goes backwards, or the computer sleeps.",
    promised: "Leases and deadlines do not last longer, ids keep their order, and no time is negative.",
  },
  F31: {
    wrong: "A region is full, or the organization's quota is used up.",
    promised:
      "The error names the region and others with capacity. Fallback regions are tried, and nothing is left behind.",
  },
  F32: {
    wrong: "A Postgres cluster fails, takes too long, or is deleted meanwhile.",
    promised: "404 and 410 count as deleted. A cluster that failed or is not ready in time keeps its id.",
  },
  F33: {
    wrong: "A secret could appear in a log, state, difference, message or trace.",
    promised: "It never appears in plain text.",
    decisive: true,
  },
  F34: {
    wrong: "A name, id or hostname contains a path to another target, or is very long.",
    promised: "It is refused before it is sent, and refused by the service. No file is ever named after it.",
  },
  F35: {
    wrong: "A token, nonce or value contains text that would become a header or a query.",
    promised: "It is refused before it is sent, or stays one value.",
  },
  F36: {
    wrong: "A server redirects elsewhere, or a web page or a foreign host name reaches the local service.",
    promised: "Redirects are not followed, and no token is sent there. The service accepts only its own host names.",
  },
  F37: {
    wrong: "Two runs work on the same App at once.",
    promised: "Leases serialize their updates. No update is lost, and neither run adopts the other's objects.",
    decisive: true,
  },
  F38: {
    wrong: "A program is very large, or its values are not known yet.",
    promised:
      "A preview writes nothing, 5,000 resources are compared without a request, and a limit is one clear error.",
  },
  F39: {
    wrong: "A run that renames a resource does not finish; a later one deletes the old resource.",
    promised:
      "Whatever the new one claims by name is kept: a secret, attachment, metadata key, certificate or address.",
    decisive: true,
  },
  F40: {
    wrong: "A guarded resource is replaced by force, and a normal run follows.",
    promised: "Every later run keeps the original, until the program allows the loss.",
    decisive: true,
  },
  F41: {
    wrong: "An App or cluster with guarded resources in it is renamed or replaced.",
    promised: "The preview refuses it and names both. A stack in that state can be restored.",
    decisive: true,
  },
  F42: {
    wrong: "One run uses a wrong endpoint or organization, and the next the right one.",
    promised: "Nothing is forgotten and nothing is replaced.",
    decisive: true,
  },
  F43: {
    wrong: "The engine sends a create again after it reported that an initialization failed.",
    promised: "The create continues with the same object. None is forgotten, and there are never two.",
  },
  F44: {
    wrong: "Others change our metadata, and an update of another setting follows.",
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
    promised: "Requests of other clients take at most 50% longer.",
  },
  F47: {
    wrong: "A flood without a token: long paths, silent and half-open connections, slow bodies.",
    promised: "Memory is bounded, descriptors are released, and other clients are served.",
  },
  F48: {
    wrong: "One request is expensive to validate: huge maps, lists or texts.",
    promised: "It is refused before the work begins, and no other client waits for it.",
  },
  F49: {
    wrong: "Printed text from others contains control characters.",
    promised: "It is escaped and truncated.",
  },
  F50: {
    wrong: "A rollout of a fleet fails, is interrupted at any step, or meets changes by others.",
    promised: "As many Machines are ready at every moment as the strategy promises, and the next `up` continues.",
  },
  F51: {
    wrong: "A program ends after its start, once or again and again, also between two looks at its Machine.",
    promised:
      "The operation fails at once, with the exit code, the number of restarts, and the last lines that the program wrote.",
    decisive: true,
  },
  F52: {
    wrong: "A Machine fails after its deployment.",
    promised: "It is never reported as unchanged. The next `up` repairs it in place, and fails if it fails again.",
    decisive: true,
  },
  F53: {
    wrong: "A fleet's new version crashes again and again, and runs at each look in between.",
    promised:
      "The rollout ends by itself at the first Machine, with the reason. Only progress prolongs it, and an attempt is none.",
    decisive: true,
  },
  F54: {
    wrong:
      "Machines or volumes of others have the names of a fleet's, or a host cannot be reached, also without a state.",
    promised:
      "They are never changed, counted, waited for or mounted. What may be the fleet's is refused, with the way to adopt it.",
    decisive: true,
  },
  F55: {
    wrong: "A gate was passed by an earlier rollout, or another client's lease keeps a rollout from going on.",
    promised:
      "A gate is passed for one configuration only. No progress is a failure: the fleet goes back if it is to, to what it ran.",
    decisive: true,
  },
  F56: {
    wrong: "A secret object contains common words.",
    promised:
      "Messages keep the words, and still hide every value at a place for secrets and every value marked itself.",
  },
  F57: {
    wrong:
      "A name, value, remark or file name in the service or a Terraform state contains control characters, line separators or interpolation.",
    promised:
      "Generated programs read it back as the same text, and never as code. What a language cannot write is left out with a remark.",
  },
  F58: {
    wrong:
      "An orphan's volume is mounted by a Machine of others, or becomes theirs between the listing and the deletion.",
    promised: "Everything is checked again before each request that deletes. The orphan stays, with the reason.",
    decisive: true,
  },
  F59: {
    wrong: "A state was copied, moved or has the same name in another backend.",
    promised:
      'No stack claims or deletes what another one may own: only the state, its backend and the tag together prove "this stack".',
    decisive: true,
  },
  F61: {
    wrong:
      "The user's environment has settings for other work: of Pulumi's commands, of Postgres, a proxy, a language.",
    promised: "The provider, its commands and the service do the same as without them.",
  },
  F97: {
    wrong: "The leader of several members dies, is paused for longer than its lease, or cannot reach the database.",
    promised:
      "Another member answers within three seconds, with every change that was answered. The old leader answers nothing more, and ends.",
    decisive: true,
  },
  F98: {
    wrong: "The database of several members restarts, fails over, refuses changes, or has a full disk.",
    promised: "What was answered is in it. Changes wait until it accepts them, and nothing is made twice.",
  },
  F99: {
    wrong: "A member's copy is damaged, too old, or has changes that were never answered.",
    promised: "It is replaced by what the log has, and a metric counts it. The copies of all members are equal.",
  },
  F100: {
    wrong:
      "Two services are given one database, a folder is served beside the store that has its data, or a member has another key or version.",
    promised: "The second one is refused with the reason, and nothing is changed.",
  },
  F101: {
    wrong:
      "The container engine with the Machines of several members is lost, or the folder with their Postgres servers.",
    promised:
      "No member elsewhere leads by itself. One that is promoted creates everything again, and first names the data that are lost. If the lost one comes back, what runs there ends.",
  },
  ...attacks.databases,
  ...attacks.hostnames,
  ...attacks.proxy,
  ...attacks.console,
  ...attacks.containers,
  ...attacks.time,
  ...attacks.authorization,
} as const satisfies Record<string, Fault>;
