// What a client accepts.

/** The weight of a media type or an encoding in a header that begins with `Accept`, from 0 to 1; 0 when it is not named. */
export function weightOf(type: string, accept: string): number {
  const [, ...parameters] = accept
    .split(",")
    .map((part) => part.split(";").map((text) => text.trim().toLowerCase()))
    .find(([name]) => name === type) ?? [type, "q=0"];
  const weight = Number(parameters.find((text) => text.startsWith("q="))?.slice(2) ?? 1);
  return Number.isNaN(weight) ? 1 : weight;
}
