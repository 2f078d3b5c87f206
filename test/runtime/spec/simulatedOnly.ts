// The specification tests that do not run on containers, with the reasons.
import type { Exceptions } from "../../support/exceptions.ts";

/** The exceptions. */
export const exceptions: readonly Exceptions[] = [
  {
    because: "the test asks for a simulated behaviour or capacity",
    tests: {
      inside: ["a deaf process reacts only to SIGKILL"],
      machines: [
        "a region that does not exist is 422, a full one is insufficient_capacity",
        "service checks and named checks pass a moment after the start",
        "a deaf process is killed when its stop timeout ends",
        "a stop takes 300 seconds at most",
        "a restart waits for the given time, and force_stop does not wait",
        "a hanging Machine never starts, but can be stopped and destroyed",
        "a standby starts when its Machine fails, and not when that is stopped",
        "a Machine with the schedule…",
        "retries are counted for five minutes: a process that rarely fails is always restarted",
      ],
      wait: [
        "several states, repeated or separated by commas",
        "settled is any stable state, without a pending transition",
        "a state that the Machine passed through during a wait counts as reached",
      ],
    },
  },
  {
    because: "the clock of the test decides how long a process, a command or a copy takes",
    tests: {
      inside: [
        "a slow command is answered when it has exited",
        "a command that does not exit in time is 408, after the requested timeout or 60 seconds",
        "a process that was ended by a signal counts as a failure for the policy…",
      ],
      organizations: [
        "rule 2: updated_after returns only later changes; an earlier time also returns delayed ones",
        "creating a volume's file system is a change",
      ],
      volumes: [
        "a snapshot is pending while it is written; a second one is refused meanwhile",
        "an unfinished snapshot cannot be restored yet",
      ],
      wait: [
        "a wait is held and returns at the change, not before",
        "a wait for an old version fails and says that it was replaced",
        "one change notifies a thousand waits for one Machine",
      ],
    },
  },
  {
    because: "the test expects the names of the simulated authority",
    tests: { certificates: ["an ACME certificate is pending until it is issued, shortly after the DNS is correct"] },
  },
  {
    because: "the program decides whether it survives the signal",
    tests: {
      inside: ["after SIGALRM…", "after SIGHUP…", "after SIGPIPE…", "after SIGUSR1…", "after SIGUSR2…"],
    },
  },
  {
    because: "the init process of a container does not pass the signal on",
    tests: {
      inside: ["after SIGABRT…", "after SIGFPE…", "after SIGILL…", "after SIGSEGV…", "after SIGTRAP…"],
    },
  },
  {
    because: "the image of the tests has no shell",
    tests: { inside: ['exec of ["sh",…', 'exec of ["/bin/sh",…'] },
  },
  {
    because: "the name of the image has a digest that the image of the tests does not have",
    tests: { machines: ["the image registry.example.com/app@sha256:…"] },
  },
  {
    because: "a container engine cannot do this (docs/local-cloud.md#what-is-not)",
    tests: {
      inside: [
        'exec of {"command":["ls"],"container":…',
        "a command may run in a container of the Machine",
        "processes show what the Machine runs and which ports it listens on",
        "reclaiming takes at most the free memory",
      ],
    },
  },
];
