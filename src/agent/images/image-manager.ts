/** Makes images present: pull policies, one pull at a time, back-off per pod and image, credentials. */
import type { Container } from "../../api/core/container.ts";
import type { Pod } from "../../api/core/pod.ts";
import type { Clock } from "../../std/clock.ts";
import type { PodEvents } from "../pods/pod-events.ts";
import { type ContainerRole, podNamespace, podUid } from "../pods/pod-fields.ts";
import type { AuthConfig, Image } from "../runtime/cri/image.ts";
import { type ImageService, RuntimeError } from "../runtime/runtime.ts";
import { credentialsIn, matching } from "./pull-secrets.ts";
import { parseImageReference } from "./reference.ts";

export interface ImageManagerOptions {
  readonly images: ImageService;
  readonly clock: Clock;
  readonly events: PodEvents;
  /** A Secret's decoded data; undefined when it does not exist. */
  readonly secret: (namespace: string, name: string, pod: Pod) => Promise<Readonly<Record<string, string>> | undefined>;
  readonly serialize: boolean;
  /** Pulls per second; 0 is unlimited. */
  readonly qps: number;
  readonly burst: number;
}

export interface PresentImage {
  /** The runtime's own name of it. */
  readonly ref: string;
  readonly image: Image | undefined;
}

/**
 * Why there is no image: `ErrImagePull`, `ImagePullBackOff`, `InvalidImageName`, `ErrImageNeverPull`,
 * `ImageInspectError`.
 */
export class ImageError extends Error {
  override readonly name = "ImageError";
  readonly reason: string;
  /** Milliseconds until it is worth trying again. */
  readonly retryMs: number;

  constructor(reason: string, message: string, retryMs: number) {
    super(message);
    this.reason = reason;
    this.retryMs = retryMs;
  }
}

interface Failure {
  readonly delayMs: number;
  readonly at: number;
  readonly text: string;
}

const BACKOFF_INITIAL_MS = 10_000;
const BACKOFF_MAX_MS = 300_000;
/** After the first failed pull the back-off is noticed this soon. */
const NOTICE_MS = 1_000;
const RETRY_MS = 10_000;

export class ImageManager {
  readonly #options: ImageManagerOptions;
  /** By pod and image; dropped with the pod, so bounded by the pods of the node. */
  readonly #failures = new Map<string, Failure>();
  /** Tail of the queue of pulls; at most one pull per container of the node waits in it. */
  #queue: Promise<unknown> = Promise.resolve();
  #tokens: number;
  #tokensAt: number;

  constructor(options: ImageManagerOptions) {
    this.#options = options;
    this.#tokens = options.burst;
    this.#tokensAt = options.clock.monotonic();
  }

  /** Resolves when the container's image is there; rejects with an `ImageError`, having said so in events. */
  async ensure(pod: Pod, container: Container, role: ContainerRole, signal: AbortSignal): Promise<PresentImage> {
    const { events } = this.#options;
    const name = container.image ?? "";
    const say = (type: "Normal" | "Warning", reason: string, message: string): void =>
      events.container(pod, { role, name: container.name }, type, reason, message);
    const reference = parseImageReference(name);
    if (reference === undefined) {
      const text = `Failed to apply default image tag "${name}": couldn't parse image name "${name}": invalid reference format`;
      say("Warning", "InspectFailed", text);
      throw new ImageError("InvalidImageName", text, RETRY_MS);
    }
    const present = await this.#inspect(reference.withTag, name, say, signal);
    const policy = container.imagePullPolicy ?? (reference.withTag.endsWith(":latest") ? "Always" : "IfNotPresent");
    if (present !== undefined && policy !== "Always") {
      say("Normal", "Pulled", `Container image "${name}" already present on machine`);
      return { ref: present.id ?? name, image: present };
    }
    if (policy === "Never") {
      const text = `Container image "${name}" is not present with pull policy of Never`;
      say("Warning", "ErrImageNeverPull", text);
      throw new ImageError("ErrImageNeverPull", text, RETRY_MS);
    }
    this.#holdBack(pod, name, say);
    return this.#pull(pod, name, reference, say, signal);
  }

  /** Says which of the pod's pull secrets do not exist; images may be had without them. */
  async checkSecrets(pod: Pod): Promise<void> {
    const missing: string[] = [];
    for (const { name = "" } of pod.spec?.imagePullSecrets ?? []) {
      const found = await this.#options.secret(podNamespace(pod), name, pod).catch(() => undefined);
      if (found === undefined) missing.push(name);
    }
    if (missing.length === 0) return;
    const text = `Unable to retrieve some image pull secrets (${missing.join(", ")})`;
    const message = `${text}; attempting to pull the image may not succeed.`;
    this.#options.events.pod(pod, "Warning", "FailedToRetrieveImagePullSecret", message);
  }

  /** Forgets a pod's failures. */
  forget(uid: string): void {
    for (const key of this.#failures.keys()) {
      if (key.startsWith(`${uid}/`)) this.#failures.delete(key);
    }
  }

  async #inspect(
    withTag: string,
    name: string,
    say: (type: "Normal" | "Warning", reason: string, message: string) => void,
    signal: AbortSignal,
  ): Promise<Image | undefined> {
    try {
      return (await this.#options.images.imageStatus({ image: { image: withTag } }, signal)).image;
    } catch (error) {
      signal.throwIfAborted();
      const text = `Failed to inspect image "${name}": ${messageOf(error)}`;
      say("Warning", "InspectFailed", text);
      throw new ImageError("ImageInspectError", text, RETRY_MS);
    }
  }

  #holdBack(pod: Pod, name: string, say: (type: "Normal" | "Warning", reason: string, message: string) => void): void {
    const failure = this.#failures.get(`${podUid(pod)}/${name}`);
    if (failure === undefined) return;
    const left = failure.at + failure.delayMs - this.#options.clock.now();
    if (left <= 0) return;
    say("Normal", "BackOff", `Back-off pulling image "${name}"`);
    throw new ImageError("ImagePullBackOff", `Back-off pulling image "${name}": ErrImagePull: ${failure.text}`, left);
  }

  async #pull(
    pod: Pod,
    name: string,
    reference: NonNullable<ReturnType<typeof parseImageReference>>,
    say: (type: "Normal" | "Warning", reason: string, message: string) => void,
    signal: AbortSignal,
  ): Promise<PresentImage> {
    const { clock, images } = this.#options;
    const credentials = matching(await this.#credentials(pod), reference);
    say("Normal", "Pulling", `Pulling image "${name}"`);
    const asked = clock.monotonic();
    let began = asked;
    try {
      const ref = await this.#inTurn(async () => {
        began = clock.monotonic();
        return this.#pullWith(reference.withTag, credentials, signal);
      }, signal);
      this.#failures.delete(`${podUid(pod)}/${name}`);
      const image = (await images.imageStatus({ image: { image: reference.withTag } }, signal)).image;
      const ended = clock.monotonic();
      say(
        "Normal",
        "Pulled",
        `Successfully pulled image "${name}" in ${span(ended - began)} (${span(ended - asked)} including waiting). ` +
          `Image size: ${image?.size ?? 0n} bytes.`,
      );
      return { ref: image?.id ?? ref, image };
    } catch (error) {
      signal.throwIfAborted();
      const text = error instanceof RuntimeError ? error.detail : messageOf(error);
      const before = this.#failures.get(`${podUid(pod)}/${name}`);
      const delayMs = before === undefined ? BACKOFF_INITIAL_MS : Math.min(before.delayMs * 2, BACKOFF_MAX_MS);
      this.#failures.set(`${podUid(pod)}/${name}`, { delayMs, at: clock.now(), text });
      say("Warning", "Failed", `Failed to pull image "${name}": ${text}`);
      throw new ImageError("ErrImagePull", text, before === undefined ? NOTICE_MS : RETRY_MS);
    }
  }

  async #pullWith(image: string, credentials: readonly AuthConfig[], signal: AbortSignal): Promise<string> {
    if (!this.#takeToken()) throw new Error("pull QPS exceeded");
    let failure: unknown;
    for (const auth of credentials.length === 0 ? [undefined] : credentials) {
      try {
        const answer = await this.#options.images.pullImage(
          { image: { image }, ...(auth === undefined ? {} : { auth }) },
          signal,
        );
        return answer.imageRef ?? image;
      } catch (error) {
        failure = error;
      }
    }
    throw failure;
  }

  async #credentials(pod: Pod): Promise<ReadonlyMap<string, AuthConfig>> {
    const all = new Map<string, AuthConfig>();
    const missing: string[] = [];
    for (const { name = "" } of pod.spec?.imagePullSecrets ?? []) {
      try {
        const data = await this.#options.secret(podNamespace(pod), name, pod);
        if (data === undefined) missing.push(name);
        for (const [key, auth] of credentialsIn(data ?? {})) all.set(key, auth);
      } catch {
        missing.push(name);
      }
    }
    if (missing.length > 0) {
      this.#options.events.pod(
        pod,
        "Warning",
        "FailedToRetrieveImagePullSecret",
        `Unable to retrieve some image pull secrets (${missing.join(", ")}); attempting to pull the image may not succeed.`,
      );
    }
    return all;
  }

  async #inTurn<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    if (!this.#options.serialize) return work();
    const turn = this.#queue.then(async () => {
      signal.throwIfAborted();
      return work();
    });
    this.#queue = turn.catch(() => undefined);
    return turn;
  }

  #takeToken(): boolean {
    const { qps, burst, clock } = this.#options;
    if (qps <= 0) return true;
    const now = clock.monotonic();
    this.#tokens = Math.min(burst, this.#tokens + ((now - this.#tokensAt) / 1000) * qps);
    this.#tokensAt = now;
    if (this.#tokens < 1) return false;
    this.#tokens -= 1;
    return true;
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** `812ms`, `1.204s` */
function span(milliseconds: number): string {
  return milliseconds < 1000 ? `${Math.round(milliseconds)}ms` : `${Math.round(milliseconds) / 1000}s`;
}
