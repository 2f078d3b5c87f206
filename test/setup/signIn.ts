// Signs a person in to the console of a service, in the network in which it runs: prints the answer for its session as JSON.
import { FormBrowser } from "../support/formBrowser.ts";

async function signIn(url: string, login: string): Promise<object> {
  const browser = new FormBrowser();
  const back = await browser.signIn(`${url}/console/sign-in`, login, `${url}/console/signed-in`);
  const { headers } = await browser.request(back);
  const code = decodeURIComponent(/#code=(.+)$/.exec(headers.get("location") ?? "")?.[1] ?? "");
  const opened = await fetch(`${url}/console/session`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ code }),
  });
  const { page_key } = (await opened.json()) as { readonly page_key: string };
  const cookie = opened.headers.getSetCookie()[0]?.split(";")[0] ?? "";
  const own = { cookie, "console-page-key": page_key, "sec-fetch-site": "same-origin" };
  return (await (await fetch(`${url}/console/session`, { headers: own })).json()) as object;
}

const [, , url = "", login = ""] = process.argv;
void signIn(url, login).then((session) => console.log(JSON.stringify(session)));
