/** What the webhooks of the behaviours answer, by the object under review. */
import { setTimeout as sleep } from "node:timers/promises";
import {
  patchResponse,
  type ReceivedReview,
  reviewResponse,
  type WebhookAnswer,
} from "../../../testing/admission/webhook-fixture.ts";
import { containerOf } from "../harness/behaviour.ts";

/** How long a review of an object with `data.slow` takes. */
export const SLOW_MS = 5000;

const deny = (received: ReceivedReview, message: string): object =>
  reviewResponse(received, { allowed: false, status: { message, code: 400 } });

/**
 * Denies what has `webhook-e2e-test: webhook-disallow` among labels or data, hangs for pods `to-be-hung`, and for
 * mutating webhooks answers with patches.
 */
export async function answerReviews(received: ReceivedReview): Promise<WebhookAnswer> {
  const { request } = received.review;
  const object = request.object ?? request.oldObject ?? {};
  const { metadata = {}, data = {} } = object;
  if (request.subResource === "attach") return deny(received, "attaching is unwanted");
  if (metadata.name === "to-be-hung") return "hang";
  if (data.slow === "yes") await sleep(SLOW_MS);
  if (received.path.includes("mutate")) return mutate(received, object);
  const marked = [metadata.labels, data].some((each) => each?.["webhook-e2e-test"] === "webhook-disallow");
  return marked ? deny(received, "the object is unwanted") : reviewResponse(received, {});
}

// biome-ignore lint/suspicious/noExplicitAny: objects of every kind are reviewed
function mutate(received: ReceivedReview, { kind, data = {}, spec = {} }: any): WebhookAnswer {
  if (kind === "Pod") {
    const added = containerOf("true", {}, "webhook-added-init-container");
    const { initContainers = [] } = spec;
    if (initContainers.some(({ name }: { name: string }) => name === added.name)) return reviewResponse(received, {});
    return patchResponse(received, [{ op: "add", path: "/spec/initContainers", value: [added, ...initContainers] }]);
  }
  const names = data["mutation-start"] === "no" ? ["mutation-start", "mutation-stage-1", "mutation-stage-2"] : [];
  return patchResponse(
    received,
    names.map((name) => ({ op: "add", path: `/data/${name}`, value: "yes" })),
  );
}
