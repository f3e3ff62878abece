/**
 * containerd's own event service, on the socket of its CRI service: announces changes of containers where the CRI has
 * no events yet, as in containerd 1.6.
 */
import { bigInt64, binary, int32, list, message, optional, string } from "../../schema/define.ts";
import { decodeProtobuf } from "../../schema/protobuf/decode.ts";
import type { Infer } from "../../schema/schema.ts";

const timestamp = message("google.protobuf.Timestamp", {
  seconds: optional(1, bigInt64),
  nanos: optional(2, int32),
});

const any = message("google.protobuf.Any", { typeUrl: optional(1, string), value: optional(2, binary) });

const subscribeRequest = message("containerd.services.events.v1.SubscribeRequest", {
  filters: optional(1, list(string)),
});

export const eventEnvelope = message("containerd.services.events.v1.Envelope", {
  timestamp: optional(1, timestamp),
  namespace: optional(2, string),
  topic: optional(3, string),
  event: optional(4, any),
});
export type EventEnvelope = Infer<typeof eventEnvelope>;

/** The first members of `containerd.events.TaskExit`. */
const taskExit = message("containerd.events.TaskExit", { containerId: optional(1, string), id: optional(2, string) });

export const subscribe = {
  path: "/containerd.services.events.v1.Events/Subscribe",
  request: subscribeRequest,
  response: eventEnvelope,
} as const;

/** The namespace of the CRI service's containers and sandboxes. */
const NAMESPACE = "k8s.io";
const EXIT = "/tasks/exit";
const TOPICS = ["/containers/create", "/containers/delete", "/tasks/start", EXIT, "/tasks/oom"];

/** Events that match one of the filters are sent. */
export const eventFilters: readonly string[] = TOPICS.map((topic) => `namespace=="${NAMESPACE}",topic=="${topic}"`);

/** False for the end of an exec in a container, such as a probe. */
export function announcesChange({ topic, event }: EventEnvelope): boolean {
  if (topic !== EXIT || event?.value === undefined) return true;
  const { containerId, id } = decodeProtobuf(taskExit, event.value) as Infer<typeof taskExit>;
  return containerId === id;
}

/** Nanoseconds since 1970. */
export function createdAtOf({ timestamp }: EventEnvelope): bigint | undefined {
  if (timestamp?.seconds === undefined) return undefined;
  return timestamp.seconds * 1_000_000_000n + BigInt(timestamp.nanos ?? 0);
}
