// What the page shows without a session.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { checkSession, Failure, send } from "./live.ts";
import { Code } from "./parts.tsx";

/** Exchanges the one-time code in the address, if there is one. The code leaves the address and the history at once. */
export async function useCode(): Promise<string | undefined> {
  const code = /^#code=(.+)$/.exec(location.hash)?.[1];
  if (code === undefined) return undefined;
  history.replaceState(null, "", location.pathname + location.search);
  try {
    await send("POST", "/console/session", { code: decodeURIComponent(code) });
    return undefined;
  } catch (error) {
    return error instanceof Failure ? error.message : String(error);
  }
}

/** The form for a token. */
export function SignIn({ problem: first }: { readonly problem: string | undefined }): JSX.Element {
  const [token, setToken] = useState("");
  const [problem, setProblem] = useState(first);
  const signIn = async (event: Event): Promise<void> => {
    event.preventDefault();
    try {
      await send("POST", "/console/session", { token: token.trim() });
      setToken("");
      await checkSession();
    } catch (error) {
      setProblem(error instanceof Failure ? error.message : String(error));
    }
  };
  return (
    <main class="signin">
      <h1>Machines Control Service</h1>
      <p>On the computer of the service, this opens the console signed in:</p>
      <Code label="the command that signs in">machines-service console</Code>
      <form onSubmit={(event) => void signIn(event)}>
        <label>
          Or paste an access token
          <input
            type="password"
            value={token}
            autoComplete="off"
            required
            onInput={(event) => setToken(event.currentTarget.value)}
          />
        </label>
        {problem !== undefined && (
          <p class="problem" role="alert">
            {problem}
          </p>
        )}
        <button type="submit" class="main">
          Sign in
        </button>
      </form>
      <p class="faint">
        The token is exchanged for a session of this browser. <a href="/docs">The operations</a> need none.
      </p>
    </main>
  );
}
