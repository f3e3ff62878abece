/** Pods run the images that somebody else allows, who is asked over HTTPS with an `ImageReview`. */

import { podKind } from "../../../api/core/pod/kind.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import { askPatiently } from "../../../auth/webhook/retry.ts";
import { type ReviewClient, reviewClient } from "../../../auth/webhook/review-client.ts";
import { isPlainObject } from "../../../schema/value/plain-object.ts";
import { ExpiringCache } from "../../../std/collections/expiring-cache.ts";
import type { RandomSource } from "../../../std/crypto/random.ts";
import type { Logger } from "../../../std/log/logger.ts";
import type { Clock } from "../../../std/time/clock.ts";
import { matchesResource, metadataOf, newForbidden } from "../../chain/attributes.ts";
import type { PluginDeps } from "../../chain/factory.ts";
import type { AdmissionPlugin, AdmissionRequest } from "../../chain/plugin.ts";
import { type ImagePolicy, readImagePolicy } from "./configuration.ts";

const NAME = "ImagePolicyWebhook";
/** Annotations of pods that are shown to the webhook. */
const SHOWN = ".image-policy.k8s.io/";
/** What the audit log hears begins with it. */
const AUDIT = "imagepolicywebhook.image-policy.k8s.io/";
/** On a pod that nobody could judge. */
const FAILED_OPEN = "alpha.image-policy.k8s.io/failed-open";
const EPHEMERAL = "ephemeralcontainers";
const ANSWERS_MAX = 1024;

/** Rejects with one sentence for an operator. */
export async function imagePolicyWebhook(
  deps: Pick<PluginDeps, "clock" | "random" | "log" | "configuration" | "stopping">,
): Promise<AdmissionPlugin> {
  const { clock, configuration, stopping } = deps;
  const policy = readImagePolicy(configuration);
  const client = await reviewClient(
    {
      flag: `${policy.at}: imagePolicy.kubeConfigFile`,
      path: policy.kubeConfigFile,
      apiVersion: "imagepolicy.k8s.io/v1alpha1",
      kind: "ImageReview",
    },
    clock,
  );
  stopping.addEventListener("abort", () => void client[Symbol.asyncDispose](), { once: true });
  const judge = new Judge(policy, client, deps);
  return {
    name: NAME,
    handles: (attributes) =>
      matchesResource(attributes, podKind, WRITES) || matchesResource(attributes, podKind, WRITES, EPHEMERAL),
    // Only here a pod can be marked. It is judged when nobody changes it any more.
    ...(policy.defaultAllow ? { mutate: (request) => judge.mark(request) } : {}),
    validate: (request) => judge.check(request),
  };
}

const WRITES = ["CREATE", "UPDATE"] as const;

interface ImageReviewSpec {
  readonly containers: readonly { readonly image?: string | undefined }[];
  readonly annotations?: Readonly<Record<string, string>>;
  readonly namespace: string;
}

interface ImageReviewStatus {
  readonly allowed: boolean;
  readonly reason: string;
  readonly auditAnnotations: Readonly<Record<string, string>>;
}

interface Deps {
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
}

class Judge {
  readonly #policy: ImagePolicy;
  readonly #client: ReviewClient;
  readonly #deps: Deps;
  readonly #answers: ExpiringCache<ImageReviewStatus>;
  /** Why nobody answered in the course of a request, by its signal: there nobody is asked a second time. */
  readonly #unanswered = new WeakMap<AbortSignal, Error>();

  constructor(policy: ImagePolicy, client: ReviewClient, deps: Deps) {
    this.#policy = policy;
    this.#client = client;
    this.#deps = deps;
    this.#answers = new ExpiringCache(ANSWERS_MAX, deps.clock);
  }

  /** The pod with a word on it, where nobody answers. */
  async mark(request: AdmissionRequest): Promise<Pod | undefined> {
    if ((await this.#answer(request)) !== undefined) return undefined;
    const pod = request.object as Pod;
    const annotations = { ...metadataOf(pod).annotations, [FAILED_OPEN]: "true" };
    return { ...pod, metadata: { ...pod.metadata, annotations } };
  }

  async check(request: AdmissionRequest): Promise<void> {
    const status = await this.#answer(request);
    if (status === undefined) {
      request.annotate(`${AUDIT}failed-open`, "true");
      return;
    }
    for (const [key, value] of Object.entries(status.auditAnnotations)) request.annotate(AUDIT + key, value);
    if (status.allowed) return;
    const why = "image policy webhook backend denied one or more images";
    throw newForbidden(
      request,
      status.reason === "" ? "one or more images rejected by webhook backend" : `${why}: ${status.reason}`,
    );
  }

  /** Undefined where nobody answers and that does no harm. */
  async #answer(request: AdmissionRequest): Promise<ImageReviewStatus | undefined> {
    const spec = specOf(request);
    const question = JSON.stringify(spec);
    const known = this.#answers.get(question);
    if (known !== undefined) return known;
    const before = this.#unanswered.get(request.signal);
    try {
      if (before !== undefined) throw before;
      const status = readStatus(await this.#ask(spec, request.signal));
      const { allowTtlMs, denyTtlMs } = this.#policy;
      this.#answers.set(question, status, status.allowed ? allowTtlMs : denyTtlMs);
      return status;
    } catch (cause) {
      const error = cause as Error;
      request.signal.throwIfAborted();
      const { defaultAllow } = this.#policy;
      if (before === undefined) {
        this.#unanswered.set(request.signal, error);
        this.#deps.log.error("Cannot ask whether a pod may run its images", error, { allowed: defaultAllow });
      }
      if (defaultAllow) return undefined;
      throw newForbidden(request, error.message);
    }
  }

  #ask(spec: ImageReviewSpec, signal: AbortSignal): Promise<unknown> {
    const { clock, random } = this.#deps;
    const patience = { initialMs: this.#policy.retryMs, maxMs: Number.POSITIVE_INFINITY };
    return askPatiently(() => this.#client.ask(spec), { clock, random, ...patience, signal });
  }
}

function specOf({ object, namespace, subresource }: AdmissionRequest): ImageReviewSpec {
  const { spec, metadata } = object as Pod;
  const containers =
    subresource === EPHEMERAL
      ? (spec?.ephemeralContainers ?? [])
      : [...(spec?.containers ?? []), ...(spec?.initContainers ?? [])];
  const annotations = Object.entries(metadata?.annotations ?? {}).filter(([name]) => name.includes(SHOWN));
  const shown = annotations.sort(([a], [b]) => (a < b ? -1 : 1));
  return {
    containers: containers.map(({ image }) => ({ image })),
    ...(shown.length === 0 ? {} : { annotations: Object.fromEntries(shown) }),
    namespace,
  };
}

/** Throws an `Error` for an answer that is none. */
function readStatus(status: unknown): ImageReviewStatus {
  const { allowed = false, reason, auditAnnotations } = isPlainObject(status) ? status : {};
  if (typeof allowed !== "boolean") throw new Error("status.allowed: expected true or false");
  const texts = Object.entries(isPlainObject(auditAnnotations) ? auditAnnotations : {}).filter(
    (entry): entry is [string, string] => typeof entry[1] === "string",
  );
  return {
    allowed,
    reason: typeof reason === "string" ? reason : "",
    auditAnnotations: Object.fromEntries(texts),
  };
}
