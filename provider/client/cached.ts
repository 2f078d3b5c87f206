// Answers that do not change during a run, asked for once.
import type { Api } from "./api.ts";

/** The answer to a question whose answer does not change during a run; asked once, however many resources want it. */
export function cached<T>(api: Api, question: string, ask: () => Promise<T>): Promise<T> {
  const known = api.shared.facts.get(question);
  if (known) return known as Promise<T>;
  const answer = ask();
  answer.catch(() => api.shared.facts.delete(question));
  api.shared.facts.set(question, answer);
  return answer;
}
