/** The time of `TRIGGER_TIME`: its precision is seconds, that of the timestamps it comes from. */
import type { Pod } from "../../api/core/pod/schema.ts";
import type { Service } from "../../api/core/service/schema.ts";
import { TRIGGER_TIME } from "../../api/discovery/endpoint-slice/schema.ts";

interface ServiceTimes {
  readonly service: string;
  readonly pods: ReadonlyMap<string, string>;
}

/** Timestamps in RFC 3339 and UTC, which order as text. */
export class TriggerTimes {
  /** By service; the controller deletes the entry with the service. */
  readonly #last = new Map<string, ServiceTimes>();

  /** The earliest time that changed since the last call; undefined if none did. */
  next(key: string, service: Service, pods: readonly Pod[]): string | undefined {
    const last = this.#last.get(key);
    const created = service.metadata?.creationTimestamp ?? "";
    const times = new Map(pods.map((pod) => [pod.metadata?.name ?? "", readyTime(pod)]));
    this.#last.set(key, { service: created, pods: times });
    if (last === undefined) return created === "" ? undefined : created;
    const changed = [...times].filter(([name, time]) => time > (last.pods.get(name) ?? "")).map(([, time]) => time);
    if (created > last.service) changed.push(created);
    return changed.sort()[0];
  }

  delete(key: string): void {
    this.#last.delete(key);
  }
}

function readyTime({ status }: Pod): string {
  return status?.conditions?.find(({ type }) => type === "Ready")?.lastTransitionTime ?? "";
}

/** The annotations with the time; without it if it is undefined. */
export function withTriggerTime(
  annotations: Readonly<Record<string, string>> | undefined,
  time: string | undefined,
): Readonly<Record<string, string>> | undefined {
  const { [TRIGGER_TIME]: _, ...rest } = annotations ?? {};
  const next = time === undefined ? rest : { ...rest, [TRIGGER_TIME]: time };
  return Object.keys(next).length === 0 ? undefined : next;
}
