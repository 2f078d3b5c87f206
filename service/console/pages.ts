// Limits the pages that hold a stream of changes open, so that nobody takes the places of the others.
import { Refusal } from "../refusal.ts";

// ASSUMED: at most 200 pages of the console are open at a time, 100 of an organization, and 50 of a token. The last 20 places are for
// sessions that were opened with a code of this computer.
const most = { inAll: 200, ofOrganization: 100, ofToken: 50, forOperator: 20 } as const;

/** Who holds a page open. */
export interface Holder {
  /** Id of the token. */
  readonly token: string;
  readonly org: number;
  readonly isOperator: boolean;
}

interface Page extends Holder {
  readonly end: () => void;
}

const tooMany = (status: number, error: string): Refusal => new Refusal(status, { error }, { "retry-after": "5" });

/** The pages that are open, oldest first. */
export class Pages {
  readonly #open = new Set<Page>();

  /**
   * Adds a page; returns how to remove it. `end` ends it: when all places are taken, an organization with fewer pages gets a place of
   * the one with the most.
   * @throws Refusal if there is no place
   */
  add(holder: Holder, end: () => void): () => void {
    this.#requireShare(holder);
    if (this.#open.size >= most.inAll - (holder.isOperator ? 0 : most.forOperator)) this.#takePlace(holder);
    const page = { ...holder, end };
    this.#open.add(page);
    return () => void this.#open.delete(page);
  }

  #requireShare({ token, org, isOperator }: Holder): void {
    // Sessions of the operator count for themselves: a program that has the same token must not take their places.
    const own = this.#all((page) => page.token === token && page.isOperator === isOperator).length;
    if (own >= most.ofToken)
      throw tooMany(429, `too many pages of this token are open, at most ${most.ofToken} may be`);
    if (!isOperator && this.#of(org).length >= most.ofOrganization)
      throw tooMany(429, `too many pages of this organization are open, at most ${most.ofOrganization} may be`);
  }

  /** Ends the newest page of the organization with the most, if that has two more than this one. */
  #takePlace({ org, isOperator }: Holder): void {
    const orgs = [...new Set([...this.#open].map((page) => page.org))];
    const counts = orgs.map((one) => this.#of(one)).sort((a, b) => b.length - a.length);
    const [largest = []] = counts;
    const taken = largest.at(-1);
    if (taken === undefined || (!isOperator && largest.length < this.#of(org).length + 2))
      throw tooMany(503, `too many pages are open, at most ${most.inAll} may be`);
    this.#open.delete(taken);
    taken.end();
  }

  /** Pages of an organization without those of the operator, oldest first. */
  #of(org: number): readonly Page[] {
    return this.#all((page) => page.org === org && !page.isOperator);
  }

  #all(is: (page: Page) => boolean): readonly Page[] {
    return [...this.#open].filter(is);
  }
}
