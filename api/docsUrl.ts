// Addresses of pages of the documentation, for messages: most readers have no clone of the repository.
import { homepage } from "./homepage.ts";

/** A page below `docs/`, or one of its sections. */
type Page = `${string}.md` | `${string}.md#${string}`;

/** The address under which anyone can open a page. */
export const docsUrl = (page: Page): string => `${homepage}/blob/main/docs/${page}`;
