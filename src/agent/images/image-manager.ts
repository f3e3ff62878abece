/** Pulls images: pull policies, credentials, back-off per pod and image. */
import type { Container } from "../../api/core/container/schema.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import { type ImageReference, parseImageReference } from "../../api/core/pod-spec/image-reference.ts";
import { goQuote } from "../../schema/value/go-quote.ts";
import { formatDuration as formatNanos } from "../../schema/value/time.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { PodEventRecorder } from "../pods/pod-events.ts";
import { type ContainerRole, podNamespace, podUid } from "../pods/pod-fields.ts";
import type { Image } from "../runtime/cri/image.ts";
import type { ImageSpec } from "../runtime/cri/image-spec.ts";
import { type ImageService, RuntimeError } from "../runtime/runtime.ts";
import type { CredentialProviders } from "./credential-providers.ts";
import { parsePullSecret, type RegistryAuths } from "./docker-config.ts";
import { type Credential, Keyring } from "./keyring.ts";
import { type PullLimits, PullQueue } from "./pull-queue.ts";
import type { PullRecords } from "./pull-records/pull-records.ts";

type Texts = Readonly<Record<string, string>>;

export interface ImageManagerOptions extends PullLimits {
  readonly images: ImageService;
  readonly clock: Clock;
  readonly events: PodEventRecorder;
  /** A Secret's decoded data; undefined when it does not exist. */
  readonly getSecret: (namespace: string, name: string, pod: Pod) => Promise<Texts | undefined>;
  /** Empty when it does not exist or is unknown. Read only with `pullRecords`. */
  readonly getSecretUid?: (namespace: string, name: string, pod: Pod) => Promise<string>;
  /** Undefined: every pod may use the images that are present. */
  readonly pullRecords?: Pick<PullRecords, "mustPull" | "recordIntent" | "recordPulled" | "recordFailed"> | undefined;
  /** The runtime handler of a pod, which requests for images name; undefined: they name none. */
  readonly getRuntimeHandler?: ((pod: Pod) => Promise<string>) | undefined;
  /** Credentials in files of the node. */
  readonly nodeCredentials?: () => Promise<RegistryAuths>;
  readonly providers?: Pick<CredentialProviders, "getCredentials" | "forget"> | undefined;
  /** Called when an image of so many bytes was pulled. */
  readonly onPulled?: ((pod: Pod, bytes: number, milliseconds: number) => void) | undefined;
}

export interface PresentImage {
  /** The runtime's id of the image. */
  readonly ref: string;
  readonly image: Image | undefined;
}

interface PulledImage extends PresentImage {
  /** Undefined: pulled without credentials. */
  readonly credential: Credential | undefined;
}

/**
 * `reason` is `ErrImagePull`, `ImagePullBackOff`, `InvalidImageName`, `ErrImageNeverPull`, `ImageInspectError`,
 * `RegistryUnavailable` or `SignatureValidationFailed`.
 */
export class ImageError extends Error {
  override readonly name = "ImageError";
  readonly reason: string;
  /** Milliseconds until the next attempt. */
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
  /** `reason: message` */
  readonly text: string;
}

type RecordEvent = (type: "Normal" | "Warning", reason: string, message: string) => void;

/** One image for one container. */
interface PullTarget {
  readonly pod: Pod;
  /** As in the spec. */
  readonly name: string;
  readonly reference: ImageReference;
  /** As requests name it. */
  readonly spec: ImageSpec;
  readonly record: RecordEvent;
  readonly signal: AbortSignal;
}

const BACKOFF_INITIAL_MS = 10_000;
const BACKOFF_MAX_MS = 300_000;
/** Time after which a failure no longer counts. */
const BACKOFF_RESET_MS = 2 * BACKOFF_MAX_MS;
/** Time from the first failed pull to the status ImagePullBackOff. */
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

  /** Resolves when the container's image is present; records events; rejects with an `ImageError`. */
  async ensureImage(pod: Pod, container: Container, role: ContainerRole, signal: AbortSignal): Promise<PresentImage> {
    const { events } = this.#options;
    const name = container.image ?? "";
    const record: RecordEvent = (type, reason, message) =>
      events.recordContainerEvent(pod, { role, name: container.name }, type, reason, message);
    const reference = parseImageReference(name);
    if ("error" in reference) {
      const quoted = goQuote(name);
      const why = `couldn't parse image name ${quoted}: ${reference.error}`;
      const text = `Failed to apply default image tag ${quoted}: ${why}`;
      record("Warning", "InspectFailed", text);
      throw new ImageError("InvalidImageName", text, RETRY_MS);
    }
    const runtimeHandler = (await this.#options.getRuntimeHandler?.(pod)) || undefined;
    const spec: ImageSpec = {
      image: reference.withTag,
      annotations: pod.metadata?.annotations ?? {},
      ...(runtimeHandler === undefined ? {} : { runtimeHandler }),
    };
    const target: PullTarget = { pod, name, reference, spec, record, signal };
    const policy = container.imagePullPolicy ?? (reference.withTag.endsWith(":latest") ? "Always" : "IfNotPresent");
    const present = policy === "Always" ? undefined : await this.#inspect(target);
    if (present !== undefined && (await this.#mayUse(target, present))) {
      const suffix = this.#options.pullRecords === undefined ? "" : " and can be accessed by the pod";
      record("Normal", "Pulled", `Container image "${name}" already present on machine${suffix}`);
      return { ref: present.id ?? name, image: present };
    }
    if (policy === "Never") {
      // The same for an image that is present without access to it, whose presence is none of the pod's business.
      const text = `Container image "${name}" is not present with pull policy of Never`;
      record("Warning", "ErrImageNeverPull", text);
      throw new ImageError("ErrImageNeverPull", text, RETRY_MS);
    }
    const credentials = await this.#credentials(target);
    this.#checkBackOff(target);
    await this.#recordIntent(target);
    let hasEnded = false;
    try {
      const pulled = await this.#pull(target, credentials);
      hasEnded = true;
      await this.#options.pullRecords?.recordPulled(name, pulled.ref, pulled.credential);
      return pulled;
    } finally {
      if (!hasEnded) await this.#options.pullRecords?.recordFailed(name);
    }
  }

  /** Whether the pod may use the present image without a pull of its own. */
  async #mayUse(target: PullTarget, present: Image): Promise<boolean> {
    const { pullRecords } = this.#options;
    if (pullRecords === undefined) return true;
    const credentials = await this.#podCredentials(target);
    return !(await pullRecords.mustPull(target.name, present.id ?? "", credentials));
  }

  async #recordIntent({ name }: PullTarget): Promise<void> {
    try {
      await this.#options.pullRecords?.recordIntent(name);
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      const text = `Failed to record image pull intent for container image "${name}": ${why}`;
      throw new ImageError("ErrImagePull", text, RETRY_MS);
    }
  }

  /** Records an event for pull secrets that are missing; the image may be public. */
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

  async #inspect({ spec, record, signal }: PullTarget): Promise<Image | undefined> {
    try {
      return (await this.#options.images.imageStatus({ image: spec }, signal)).image;
    } catch (error) {
      signal.throwIfAborted();
      // Kubernetes writes the id of the image, which it does not have then.
      const text = `Failed to inspect image "": ${error instanceof Error ? error.message : String(error)}`;
      record("Warning", "InspectFailed", text);
      throw new ImageError("ImageInspectError", text, RETRY_MS);
    }
  }

  #checkBackOff({ pod, name, record }: PullTarget): void {
    const failure = this.#failures.get(`${podUid(pod)}/${name}`);
    if (failure === undefined) return;
    const left = failure.at + failure.delayMs - this.#options.clock.monotonic();
    if (left <= 0) return;
    record("Normal", "BackOff", `Back-off pulling image "${name}"`);
    throw new ImageError("ImagePullBackOff", `Back-off pulling image "${name}": ${failure.text}`, left);
  }

  async #pull(target: PullTarget, credentials: readonly Credential[]): Promise<PulledImage> {
    const { clock, images } = this.#options;
    const { name, spec, record, signal } = target;
    record("Normal", "Pulling", `Pulling image "${name}"`);
    const requestedAt = clock.monotonic();
    try {
      const { ref, credential, began } = await this.#queue.run(async () => {
        const began = clock.monotonic();
        return { ...(await this.#pullWith(spec, credentials, signal)), began };
      }, signal);
      const ended = clock.monotonic();
      const image = await images.imageStatus({ image: spec }, signal).then(
        (found) => found.image,
        () => undefined,
      );
      const spent = `${formatDuration(ended - began)} (${formatDuration(ended - requestedAt)} including waiting)`;
      const size = image?.size ?? 0n;
      this.#options.onPulled?.(target.pod, Number(size), ended - began);
      record("Normal", "Pulled", `Successfully pulled image "${name}" in ${spent}. Image size: ${size} bytes.`);
      return { ref: image?.id ?? ref, image, credential };
    } catch (error) {
      signal.throwIfAborted();
      throw this.#recordFailure(target, describeError(error));
    }
  }

  #recordFailure({ pod, name, record }: PullTarget, text: string): ImageError {
    const key = `${podUid(pod)}/${name}`;
    const at = this.#options.clock.monotonic();
    const before = this.#failures.get(key);
    const isRepeated = before !== undefined && at - before.at <= BACKOFF_RESET_MS;
    const delayMs = isRepeated ? Math.min(before.delayMs * 2, BACKOFF_MAX_MS) : BACKOFF_INITIAL_MS;
    record("Warning", "Failed", `Failed to pull image "${name}": ${text}`);
    const { reason, message } = explainFailure(name, text);
    this.#failures.set(key, { delayMs, at, text: `${reason}: ${message}` });
    return new ImageError(reason, message, isRepeated ? RETRY_MS : FIRST_RETRY_MS);
  }

  /** Tries one credential after the other. */
  async #pullWith(
    spec: ImageSpec,
    credentials: readonly Credential[],
    signal: AbortSignal,
  ): Promise<Pick<PulledImage, "ref" | "credential">> {
    const failures: string[] = [];
    for (const credential of credentials.length === 0 ? [undefined] : credentials) {
      this.#queue.takeToken();
      try {
        const request = { image: spec, ...(credential === undefined ? {} : { auth: credential.auth }) };
        const { imageRef = spec.image ?? "" } = await this.#options.images.pullImage(request, signal);
        return { ref: imageRef, credential };
      } catch (error) {
        signal.throwIfAborted();
        failures.push(describeError(error));
      }
    }
    const different = [...new Set(failures)];
    throw new Error(different.length === 1 ? different[0] : `[${different.join(", ")}]`);
  }

  /** Of the pod's pull secrets, then of the node, then of plugins. */
  async #credentials(target: PullTarget): Promise<readonly Credential[]> {
    const { nodeCredentials, providers } = this.#options;
    const { pod, reference } = target;
    const repository = `${reference.registry}/${reference.repository}`;
    const ofNode = new Keyring();
    if (nodeCredentials !== undefined) ofNode.add(await nodeCredentials(), { kind: "node" });
    const ofPlugins = new Keyring();
    for (const { auths, isForAccount } of (await providers?.getCredentials(pod, repository)) ?? []) {
      ofPlugins.add(auths, { kind: isForAccount ? "account" : "node" });
    }
    const ofPod = await this.#podCredentials(target);
    return [...ofPod, ...[ofNode, ofPlugins].flatMap((keyring) => keyring.lookup(repository))];
  }

  /** Of the pod's pull secrets. */
  async #podCredentials({ pod, reference }: PullTarget): Promise<readonly Credential[]> {
    const { pullRecords, getSecretUid } = this.#options;
    const keyring = new Keyring();
    const namespace = podNamespace(pod);
    for (const { name = "" } of pod.spec?.imagePullSecrets ?? []) {
      const auths = await this.#secret(pod, name);
      if (auths === undefined) continue;
      const uid = pullRecords === undefined ? "" : ((await getSecretUid?.(namespace, name, pod)) ?? "");
      keyring.add(auths, { kind: "secret", namespace, name, uid });
    }
    return keyring.lookup(`${reference.registry}/${reference.repository}`);
  }

  /** Undefined when the Secret is missing or cannot be parsed. */
  async #secret(pod: Pod, name: string): Promise<RegistryAuths | undefined> {
    try {
      const data = await this.#options.getSecret(podNamespace(pod), name, pod);
      return data && parsePullSecret(data);
    } catch {
      return undefined;
    }
  }
}

/** Prefixes of the runtime's error that Kubernetes reports as the reason. */
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

/** Omits the code UNKNOWN, which has no information. */
function describeError(error: unknown): string {
  if (error instanceof RuntimeError && error.code === "UNKNOWN") return error.detail;
  return error instanceof Error ? error.message : String(error);
}

/** As Go writes it, in whole milliseconds: `812ms`, `1.204s`, `1m2.5s`. */
function formatDuration(milliseconds: number): string {
  return formatNanos(BigInt(Math.trunc(milliseconds)) * 1_000_000n);
}
