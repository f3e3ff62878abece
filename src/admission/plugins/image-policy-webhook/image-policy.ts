/** ImagePolicyWebhook: an external webhook decides, through an ImageReview, whether a pod may run its images. */

import { podKind } from "../../../api/core/pod/kind.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import { retryWebhook } from "../../../auth/webhook/retry.ts";
import { createReviewClient, type ReviewClient } from "../../../auth/webhook/review-client.ts";
import { isPlainObject } from "../../../schema/value/plain-object.ts";
import { ExpiringCache } from "../../../std/collections/expiring-cache.ts";
import type { RandomSource } from "../../../std/crypto/random.ts";
import type { Logger } from "../../../std/log/logger.ts";
import type { Clock } from "../../../std/time/clock.ts";
import { type AdmissionRequest, matchesResource, metadataOf, newForbidden } from "../../chain/attributes.ts";
import type { PluginDeps } from "../../chain/factory.ts";
import type { AdmissionPlugin } from "../../chain/plugin.ts";
import { type ImagePolicy, readImagePolicy } from "./configuration.ts";

const NAME = "ImagePolicyWebhook";
/** Infix of the pod annotations that the webhook receives. */
const ANNOTATION_INFIX = ".image-policy.k8s.io/";
/** Prefix of the audit annotations. */
const AUDIT_PREFIX = "imagepolicywebhook.image-policy.k8s.io/";
/** Annotation of a pod that was admitted without a response. */
const FAILED_OPEN = "alpha.image-policy.k8s.io/failed-open";
const EPHEMERAL = "ephemeralcontainers";
const RESPONSES_MAX = 1024;

/** Rejects with an error in one sentence, for the operator. */
export async function imagePolicyWebhook(
  deps: Pick<PluginDeps, "clock" | "random" | "log" | "configuration" | "stopping">,
): Promise<AdmissionPlugin> {
  const { clock, configuration, stopping } = deps;
  const policy = readImagePolicy(configuration);
  const client = await createReviewClient(
    {
      flag: `${policy.location}: imagePolicy.kubeConfigFile`,
      path: policy.kubeConfigFile,
      apiVersion: "imagepolicy.k8s.io/v1alpha1",
      kind: "ImageReview",
    },
    clock,
  );
  stopping.addEventListener("abort", () => void client[Symbol.asyncDispose](), { once: true });
  const reviewer = new ImageReviewer(policy, client, deps);
  return {
    name: NAME,
    handles: (attributes) =>
      matchesResource(attributes, podKind, WRITES) || matchesResource(attributes, podKind, WRITES, EPHEMERAL),
    // Validation runs last, on the final pod. Only a mutation can add the failed-open annotation.
    ...(policy.defaultAllow ? { mutate: (request) => reviewer.markFailedOpen(request) } : {}),
    validate: (request) => reviewer.validate(request),
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

class ImageReviewer {
  readonly #policy: ImagePolicy;
  readonly #client: ReviewClient;
  readonly #deps: Deps;
  readonly #responses: ExpiringCache<ImageReviewStatus>;
  /** The error of a failed call, by the request's signal: the webhook is called once for each request. */
  readonly #failures = new WeakMap<AbortSignal, Error>();

  constructor(policy: ImagePolicy, client: ReviewClient, deps: Deps) {
    this.#policy = policy;
    this.#client = client;
    this.#deps = deps;
    this.#responses = new ExpiringCache(RESPONSES_MAX, deps.clock);
  }

  /** Adds the failed-open annotation when the webhook is unavailable. */
  async markFailedOpen(request: AdmissionRequest): Promise<Pod | undefined> {
    if ((await this.#review(request)) !== undefined) return undefined;
    const pod = request.object as Pod;
    const annotations = { ...metadataOf(pod).annotations, [FAILED_OPEN]: "true" };
    return { ...pod, metadata: { ...pod.metadata, annotations } };
  }

  async validate(request: AdmissionRequest): Promise<void> {
    const status = await this.#review(request);
    if (status === undefined) {
      request.annotate(`${AUDIT_PREFIX}failed-open`, "true");
      return;
    }
    for (const [key, value] of Object.entries(status.auditAnnotations)) request.annotate(AUDIT_PREFIX + key, value);
    if (status.allowed) return;
    const denied = "image policy webhook backend denied one or more images";
    throw newForbidden(
      request,
      status.reason === "" ? "one or more images rejected by webhook backend" : `${denied}: ${status.reason}`,
    );
  }

  /** Undefined if the webhook is unavailable and the policy is to admit. */
  async #review(request: AdmissionRequest): Promise<ImageReviewStatus | undefined> {
    const spec = reviewSpecOf(request);
    const key = JSON.stringify(spec);
    const cached = this.#responses.get(key);
    if (cached !== undefined) return cached;
    const failure = this.#failures.get(request.signal);
    try {
      if (failure !== undefined) throw failure;
      const status = decodeStatus(await this.#call(spec, request.signal));
      const { allowTtlMs, denyTtlMs } = this.#policy;
      this.#responses.set(key, status, status.allowed ? allowTtlMs : denyTtlMs);
      return status;
    } catch (cause) {
      const error = cause as Error;
      request.signal.throwIfAborted();
      const { defaultAllow } = this.#policy;
      if (failure === undefined) {
        this.#failures.set(request.signal, error);
        this.#deps.log.error("Failed to call the image policy webhook", error, { allowed: defaultAllow });
      }
      if (defaultAllow) return undefined;
      throw newForbidden(request, error.message);
    }
  }

  #call(spec: ImageReviewSpec, signal: AbortSignal): Promise<unknown> {
    const { clock, random } = this.#deps;
    const retryOptions = { initialMs: this.#policy.retryMs, maxMs: Number.POSITIVE_INFINITY };
    return retryWebhook(() => this.#client.review(spec), { clock, random, ...retryOptions, signal });
  }
}

function reviewSpecOf({ object, namespace, subresource }: AdmissionRequest): ImageReviewSpec {
  const { spec, metadata } = object as Pod;
  const containers =
    subresource === EPHEMERAL
      ? (spec?.ephemeralContainers ?? [])
      : [...(spec?.containers ?? []), ...(spec?.initContainers ?? [])];
  const annotations = Object.entries(metadata?.annotations ?? {}).filter(([name]) => name.includes(ANNOTATION_INFIX));
  const shown = annotations.sort(([a], [b]) => (a < b ? -1 : 1));
  return {
    containers: containers.map(({ image }) => ({ image })),
    ...(shown.length === 0 ? {} : { annotations: Object.fromEntries(shown) }),
    namespace,
  };
}

/** Throws an `Error` for an invalid response. */
function decodeStatus(status: unknown): ImageReviewStatus {
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
