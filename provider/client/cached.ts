// Answers that do not change during a run. Each is requested once.
import type { Api } from "./api.ts";

/** An answer that does not change during a run. It is requested once, however many resources need it. */
export function cached<T>(api: Api, question: string, ask: () => Promise<T>): Promise<T> {
  const known = api.session.answers.get(question);
  if (known) return known as Promise<T>;
  const answer = ask();
  answer.catch(() => api.session.answers.delete(question));
  api.session.answers.set(question, answer);
  return answer;
}
