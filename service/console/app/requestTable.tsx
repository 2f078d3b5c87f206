// Requests as rows: in the log, in the rollout of an App, and below a fault.
import type { JSX } from "preact";
import type { LoggedRequest } from "../types.ts";
import { Id, Sign, Table } from "./parts.tsx";
import { resourceIn } from "../../../api/urn.ts";
import { clock, exact } from "./words.ts";

/** The status of an answer, in a colour and a word that say what it means. */
export function Status({ of }: { readonly of: number | null }): JSX.Element {
  if (of === null) return <span class="state bad">▲ closed</span>;
  return <Sign look={of < 400 ? ["●", "good"] : of < 500 ? ["◆", "odd"] : ["▲", "bad"]}>{of}</Sign>;
}

/** The resource of the program that asked. */
export function Asker({
  request: { urn, owner, tokenName },
}: {
  readonly request: Pick<LoggedRequest, "urn" | "owner" | "tokenName">;
}): JSX.Element {
  const resource = urn === null ? undefined : resourceIn(urn);
  const id = owner?.replace(/@tokens\..*/, "");
  const token = tokenName === null ? (id ?? "unknown token") : `token ${tokenName}`;
  const title = id === undefined ? "" : `token ${id}`;
  if (!resource)
    return (
      <span class="faint" title={title}>
        <bdi>{urn ?? token}</bdi>
      </span>
    );
  const { stack, type, name } = resource;
  return (
    <span title={`${urn}, by ${token}`}>
      {type} <b>{name}</b> {stack !== undefined && <span class="faint">of {stack}</span>}
    </span>
  );
}

/** The requests as a table. */
export const RequestTable = ({
  label,
  requests,
}: {
  readonly label: string;
  readonly requests: readonly LoggedRequest[];
}): JSX.Element => (
  <Table label={label} columns={["Time", "Method", "Path", "Status", "ms#", "Asked by", "Faults", "Request"]}>
    {requests.map((request) => (
      <tr key={request.seq}>
        <td>
          <time dateTime={new Date(request.at).toISOString()} title={exact(request.at)}>
            {clock(request.at)}
          </time>
        </td>
        <td>{request.method}</td>
        <td class="path mono" title={request.operation ?? "no operation"}>
          {request.path}
          {request.about !== null && <span class="faint"> {request.about}</span>}
        </td>
        <td>
          <Status of={request.status} />
        </td>
        <td class="number">{request.ms < 10 ? request.ms.toFixed(1) : Math.round(request.ms)}</td>
        <td>
          <Asker request={request} />
        </td>
        <td>{request.faults.join(", ")}</td>
        <td>
          <Id>{request.id}</Id>
        </td>
      </tr>
    ))}
  </Table>
);
