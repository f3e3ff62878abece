/** Makes images present: pull policies, credentials, back-off per pod and image. */
import type { Container } from "../../api/core/container/schema.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { PodEventRecorder } from "../pods/pod-events.ts";
import { type ContainerRole, podNamespace, podUid } from "../pods/pod-fields.ts";
import type { Image } from "../runtime/cri/image.ts";
import { type ImageService, RuntimeError } from "../runtime/runtime.ts";
import type { CredentialProviders } from "./credential-providers.ts";
import { parsePullSecret, type RegistryAuths } from "./docker-config.ts";
import { type Credential, Keyring } from "./keyring.ts";
import { type PullLimits, PullQueue } from "./pull-queue.ts";
import { type ImageReference, parseImageReference } from "./reference.ts";

type Texts = Readonly<Record<string, string>>;

export interface ImageManagerOptions extends PullLimits {
  readonly images: ImageService;
  readonly clock: Clock;
  readonly events: PodEventRecorder;
  /** A Secret's decoded data; undefined when it does not exist. */
  readonly secret: (namespace: string, name: string, pod: Pod) => Promise<Texts | undefined>;
  /** Credentials that lie on the node. */
  readonly nodeCredentials?: () => Promise<RegistryAuths>;
  readonly providers?: Pick<CredentialProviders, "getCredentials" | "forget"> | undefined;
}

export interface PresentImage {
  /** The runtime's own name of it. */
  readonly ref: string;
  readonly image: Image | undefined;
}

/**
 * Why there is no image: `ErrImagePull`, `ImagePullBackOff`, `InvalidImageName`, `ErrImageNeverPull`,
 * `ImageInspectError`, `RegistryUnavailable`, `SignatureValidationFailed`.
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

interface PullFailure {
  readonly delayMs: number;
  readonly at: number;
  /** With its reason before it. */
  readonly text: string;
}

type RecordEvent = (type: "Normal" | "Warning", reason: string, message: string) => void;

/** One image for one container. */
interface PullTarget {
  readonly pod: Pod;
  /** As the spec has it. */
  readonly name: string;
  readonly reference: ImageReference;
  readonly record: RecordEvent;
  readonly signal: AbortSignal;
}

const BACKOFF_INITIAL_MS = 10_000;
const BACKOFF_MAX_MS = 300_000;
/** So long after a failure it no longer counts. */
const BACKOFF_MEMORY_MS = 2 * BACKOFF_MAX_MS;
/** After the first failed pull the back-off is noticed this soon. */
const FIRST_RETRY_MS = 1_000;
const RETRY_MS = 10_000;

export class ImageManager {
  readonly #options: ImageManagerOptions;
  /** By pod and image; dropped with the pod, so bounded by the pods of the node. */
  readonly #failures = new Map<string, PullFailure>();
  readonly #queue: PullQueue;

  constructor(options: ImageManagerOptions) {
    this.#options = options;
    this.#queue = new PullQueue(options, options.clock);
  }

  /** Resolves when the container's image is there; rejects with an `ImageError`, having said so in events. */
  async ensureImage(pod: Pod, container: Container, role: ContainerRole, signal: AbortSignal): Promise<PresentImage> {
    const { events } = this.#options;
    const name = container.image ?? "";
    const say: RecordEvent = (type, reason, message) =>
      events.recordContainerEvent(pod, { role, name: container.name }, type, reason, message);
    const reference = parseImageReference(name);
    if (reference === undefined) {
      const text = `Failed to apply default image tag "${name}": couldn't parse image name "${name}": invalid reference format`;
      say("Warning", "InspectFailed", text);
      throw new ImageError("InvalidImageName", text, RETRY_MS);
    }
    const wanted: PullTarget = { pod, name, reference, record: say, signal };
    const policy = container.imagePullPolicy ?? (reference.withTag.endsWith(":latest") ? "Always" : "IfNotPresent");
    const present = policy === "Always" ? undefined : await this.#inspect(wanted);
    if (present !== undefined) {
      say("Normal", "Pulled", `Container image "${name}" already present on machine`);
      return { ref: present.id ?? name, image: present };
    }
    if (policy === "Never") {
      const text = `Container image "${name}" is not present with pull policy of Never`;
      say("Warning", "ErrImageNeverPull", text);
      throw new ImageError("ErrImageNeverPull", text, RETRY_MS);
    }
    const credentials = await this.#credentials(wanted);
    this.#holdBack(wanted);
    return await this.#pull(wanted, credentials);
  }

  /** Says which of the pod's pull secrets do not exist; images may be had without them. */
  async checkSecrets(pod: Pod): Promise<void> {
    const missing: string[] = [];
    for (const { name = "" } of pod.spec?.imagePullSecrets ?? []) {
      if ((await this.#secret(pod, name)) === undefined) missing.push(name);
    }
    if (missing.length === 0) return;
    const text = `Unable to retrieve some image pull secrets (${missing.join(", ")})`;
    const message = `${text}; attempting to pull the image may not succeed.`;
    this.#options.events.recordPodEvent(pod, "Warning", "FailedToRetrieveImagePullSecret", message);
  }

  /** Forgets a pod's failures. */
  forget(uid: string): void {
    for (const key of this.#failures.keys()) {
      if (key.startsWith(`${uid}/`)) this.#failures.delete(key);
    }
    this.#options.providers?.forget(uid);
  }

  async #inspect({ name, reference, record: say, signal }: PullTarget): Promise<Image | undefined> {
    try {
      return (await this.#options.images.imageStatus({ image: { image: reference.withTag } }, signal)).image;
    } catch (error) {
      signal.throwIfAborted();
      const text = `Failed to inspect image "${name}": ${error instanceof Error ? error.message : String(error)}`;
      say("Warning", "InspectFailed", text);
      throw new ImageError("ImageInspectError", text, RETRY_MS);
    }
  }

  #holdBack({ pod, name, record: say }: PullTarget): void {
    const failure = this.#failures.get(`${podUid(pod)}/${name}`);
    if (failure === undefined) return;
    const left = failure.at + failure.delayMs - this.#options.clock.monotonic();
    if (left <= 0) return;
    say("Normal", "BackOff", `Back-off pulling image "${name}"`);
    throw new ImageError("ImagePullBackOff", `Back-off pulling image "${name}": ${failure.text}`, left);
  }

  async #pull(wanted: PullTarget, credentials: readonly Credential[]): Promise<PresentImage> {
    const { clock, images } = this.#options;
    const { name, reference, record: say, signal } = wanted;
    say("Normal", "Pulling", `Pulling image "${name}"`);
    const asked = clock.monotonic();
    try {
      const { ref, began } = await this.#queue.run(async () => {
        const began = clock.monotonic();
        return { ref: await this.#pullWith(reference.withTag, credentials, signal), began };
      }, signal);
      const ended = clock.monotonic();
      const image = await images.imageStatus({ image: { image: reference.withTag } }, signal).then(
        (found) => found.image,
        () => undefined,
      );
      const spent = `${formatDuration(ended - began)} (${formatDuration(ended - asked)} including waiting)`;
      const size = image?.size ?? 0n;
      say("Normal", "Pulled", `Successfully pulled image "${name}" in ${spent}. Image size: ${size} bytes.`);
      return { ref: image?.id ?? ref, image };
    } catch (error) {
      signal.throwIfAborted();
      throw this.#failed(wanted, describeError(error));
    }
  }

  #failed({ pod, name, record: say }: PullTarget, text: string): ImageError {
    const key = `${podUid(pod)}/${name}`;
    const at = this.#options.clock.monotonic();
    const before = this.#failures.get(key);
    const counts = before !== undefined && at - before.at <= BACKOFF_MEMORY_MS;
    const delayMs = counts ? Math.min(before.delayMs * 2, BACKOFF_MAX_MS) : BACKOFF_INITIAL_MS;
    say("Warning", "Failed", `Failed to pull image "${name}": ${text}`);
    const { reason, message } = explainFailure(name, text);
    this.#failures.set(key, { delayMs, at, text: `${reason}: ${message}` });
    return new ImageError(reason, message, counts ? RETRY_MS : FIRST_RETRY_MS);
  }

  /** With one after the other; the registry decides which will do. */
  async #pullWith(image: string, credentials: readonly Credential[], signal: AbortSignal): Promise<string> {
    const failures: string[] = [];
    for (const auth of credentials.length === 0 ? [undefined] : credentials.map((each) => each.auth)) {
      this.#queue.takeToken();
      try {
        const request = { image: { image }, ...(auth === undefined ? {} : { auth }) };
        return (await this.#options.images.pullImage(request, signal)).imageRef ?? image;
      } catch (error) {
        signal.throwIfAborted();
        failures.push(describeError(error));
      }
    }
    const different = [...new Set(failures)];
    throw new Error(different.length === 1 ? different[0] : `[${different.join(", ")}]`);
  }

  /** The pod's own first, then the node's, then what plugins give. */
  async #credentials({ pod, reference }: PullTarget): Promise<readonly Credential[]> {
    const { nodeCredentials, providers } = this.#options;
    const repository = `${reference.registry}/${reference.repository}`;
    const own = new Keyring();
    for (const { name = "" } of pod.spec?.imagePullSecrets ?? []) {
      const source = { kind: "secret", namespace: podNamespace(pod), name, uid: "" } as const;
      own.add((await this.#secret(pod, name)) ?? new Map(), source);
    }
    const nodes = new Keyring();
    if (nodeCredentials !== undefined) nodes.add(await nodeCredentials(), { kind: "node" });
    const provided = new Keyring();
    for (const { auths, isForAccount: ofAccount } of (await providers?.getCredentials(pod, repository)) ?? []) {
      provided.add(auths, { kind: ofAccount ? "account" : "node" });
    }
    return [own, nodes, provided].flatMap((keyring) => keyring.lookup(repository));
  }

  /** Undefined when the Secret is not to be had, or holds nothing that can be read. */
  async #secret(pod: Pod, name: string): Promise<RegistryAuths | undefined> {
    try {
      const data = await this.#options.secret(podNamespace(pod), name, pod);
      return data && parsePullSecret(data);
    } catch {
      return undefined;
    }
  }
}

/** What runtimes say first when it is not about the image. */
const RUNTIME_REASONS = {
  RegistryUnavailable: "the registry is unavailable",
  SignatureValidationFailed: "the signature validation failed",
} as const;

function explainFailure(name: string, text: string): { readonly reason: string; readonly message: string } {
  for (const [reason, why] of Object.entries(RUNTIME_REASONS)) {
    if (!text.startsWith(reason)) continue;
    return { reason, message: `image pull failed for ${name} because ${why}${text.slice(reason.length)}` };
  }
  return { reason: "ErrImagePull", message: text };
}

/** A code that says nothing is left out. */
function describeError(error: unknown): string {
  if (error instanceof RuntimeError && error.code === "UNKNOWN") return error.detail;
  return error instanceof Error ? error.message : String(error);
}

/** `812ms`, `1.204s` */
function formatDuration(milliseconds: number): string {
  return milliseconds < 1000 ? `${Math.round(milliseconds)}ms` : `${Math.round(milliseconds) / 1000}s`;
}
