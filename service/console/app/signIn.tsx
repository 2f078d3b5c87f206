// What the page shows without a session.
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { checkSession, notice, problemOf, send } from "./live.ts";
import { keepPageKey } from "./session.ts";
import { Alert, Code } from "./parts.tsx";

/** Opens a session, and keeps what its pages send. */
async function openSession(credential: { readonly code: string } | { readonly token: string }): Promise<void> {
  const { page_key } = await send<{ readonly page_key: string }>("POST", "/console/session", credential);
  keepPageKey(page_key);
}

/** Why a sign-in at the provider failed. The address names one of them, so it cannot put words into the page. */
const problems: Readonly<Record<string, string>> = {
  unreachable: "The provider cannot be reached now; try again later.",
  refused: "The provider has refused the sign-in, or its answer is not valid; try again.",
  "no group": "You are in no group that may sign in here. The operator adds groups with `machines-service people add`.",
  expired: "The sign-in took too long, or began in another browser; try again.",
};

/** Exchanges the one-time code in the address, if there is one. The code leaves the address and the history at once. */
async function useCode(): Promise<void> {
  const [, name = "", value = ""] = /^#(code|sign-in)=(.+)$/.exec(location.hash) ?? [];
  if (name === "") return;
  history.replaceState(null, "", location.pathname + location.search);
  if (name === "sign-in") return void (notice.value = problems[decodeURIComponent(value)] ?? "");
  const code = value;
  try {
    await openSession({ code });
  } catch (error) {
    notice.value = problemOf(error);
  }
}

/** Opens a session with the code in the address, or uses the one that there is. */
export async function enter(): Promise<void> {
  await useCode();
  await checkSession();
}

/** The name of the provider at which people sign in; null without one. */
async function providerName(): Promise<string | null> {
  const { name } = await send<{ readonly name: string | null }>("GET", "/console/provider");
  return name;
}

/** The ways to sign in: with the provider of the operator, a command, or a token. */
export function SignIn(): JSX.Element {
  const [token, setToken] = useState("");
  const [provider, setProvider] = useState<string | null>(null);
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    field.current?.focus();
    providerName().then(setProvider, () => {});
  }, []);
  const problem = notice.value;
  const signIn = async (event: Event): Promise<void> => {
    event.preventDefault();
    try {
      await openSession({ token: token.trim() });
      notice.value = "";
      await checkSession();
    } catch (error) {
      notice.value = problemOf(error);
    }
  };
  return (
    <main class="signin">
      <h1>Machines Control Service</h1>
      {provider !== null && (
        <p>
          <button type="button" class="main" onClick={() => location.assign("/console/sign-in")}>
            Sign in with {provider}
          </button>
        </p>
      )}
      <p>On the computer of the service, this opens the console signed in:</p>
      <Code label="the command that signs in">machines-service console</Code>
      <form onSubmit={(event) => void signIn(event)}>
        <label>
          Or paste an access token
          <input
            ref={field}
            type="password"
            value={token}
            autoComplete="off"
            required
            onInput={(event) => setToken(event.currentTarget.value)}
          />
        </label>
        <Alert>{problem}</Alert>
        <button type="submit" class="main">
          Sign in
        </button>
      </form>
      <p class="faint">
        The token is exchanged for a session of this browser. <a href="/docs">The documentation of the API</a> needs
        none.
      </p>
    </main>
  );
}
