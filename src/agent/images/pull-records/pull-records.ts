/**
 * Records which credentials have pulled the images of the node, and decides whether a pod may use an image that is
 * present: a pod of another tenant has to pull it with its own credentials first. As kubelet's image pull manager.
 */

import { parseImageReference } from "../../../api/core/pod-spec/image-reference.ts";
import { KeyedMutex } from "../../../std/async/keyed-mutex.ts";
import type { Logger } from "../../../std/log/logger.ts";
import type { Clock } from "../../../std/time/clock.ts";
import type { Image } from "../../runtime/cri/image.ts";
import type { ImageService } from "../../runtime/runtime.ts";
import type { Credential } from "../keyring.ts";
import {
  addCredentials,
  hashCredential,
  type PullCredentials,
  type PulledRecord,
  type PullSecret,
  secretKey,
} from "./pull-record.ts";
import { PullRecordFiles } from "./pull-record-files.ts";
import {
  createVerificationPolicy,
  type PullVerificationConfig,
  type RequiresVerification,
  toRepository,
} from "./verification-policy.ts";

export interface PullRecordsOptions {
  readonly config: PullVerificationConfig;
  readonly rootDir: string;
  readonly images: Pick<ImageService, "listImages">;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Secrets that are added to a record of an image without a pull, so that many namespaces do not cause many writes. */
const SECRETS_MAX = 100;

export class PullRecords {
  readonly #options: PullRecordsOptions;
  readonly #files: PullRecordFiles;
  readonly #requiresVerification: RequiresVerification;
  readonly #mutex = new KeyedMutex();
  /** Running pulls by image; bounded by the containers of the node. */
  readonly #pulls = new Map<string, number>();

  private constructor(options: PullRecordsOptions, files: PullRecordFiles) {
    this.#options = options;
    this.#files = files;
    this.#requiresVerification = createVerificationPolicy(options.config);
  }

  /** Completes the records of pulls that the agent has not seen the end of. */
  static async open(options: PullRecordsOptions): Promise<PullRecords> {
    const records = new PullRecords(options, await PullRecordFiles.open(options.rootDir));
    await records.#completeIntents();
    return records;
  }

  /** Before a pull: until its end is recorded, the image counts as pulled by the agent. Rejects when it cannot. */
  async recordIntent(image: string): Promise<void> {
    await this.#mutex.run(intentKey(image), async () => {
      await this.#files.writeIntent(image);
      this.#pulls.set(image, (this.#pulls.get(image) ?? 0) + 1);
    });
  }

  /** `credential` has pulled the image; undefined: none was needed. A record that fails keeps the intent. */
  async recordPulled(image: string, imageRef: string, credential: Credential | undefined): Promise<void> {
    await this.#mutex.run(imageRef, async () => {
      try {
        await this.#addCredentials(image, imageRef, toPullCredentials(credential));
        await this.#endPull(image);
      } catch (error) {
        this.#options.log.error("Failed to write image pulled record", error, { image, imageRef });
      }
    });
  }

  async recordFailed(image: string): Promise<void> {
    await this.#endPull(image);
  }

  /** Whether the pod must pull the present image with its own credentials, which are those of its pull secrets. */
  async mustPull(image: string, imageRef: string, credentials: readonly Credential[]): Promise<boolean> {
    return await this.#mutex.run(imageRef, async () => {
      try {
        const record = await this.#files.readPulled(imageRef);
        const isPulled = record !== undefined || this.#pulls.has(image) || (await this.#files.hasIntent(image));
        if (!this.#requiresVerification(image, isPulled)) return false;
        return !(await this.#isAccessible(record, image, credentials.map(toPullSecret)));
      } catch (error) {
        this.#options.log.error("Unable to access cache records about image pulls", error, { image, imageRef });
        return true;
      }
    });
  }

  /** Removes the records of images that are not present; those of a pull since `startedAt` stay. */
  async prune(present: ReadonlySet<string>, startedAt: number): Promise<void> {
    const { log } = this.#options;
    const { records, problems } = await this.#files.listPulled();
    for (const problem of problems) log.warn("Cannot read an image pulled record", { problem });
    for (const { imageRef, updatedAt } of records) {
      if (updatedAt >= startedAt || present.has(imageRef)) continue;
      log.info("Removing the record of an image that is not present", { imageRef });
      await this.#mutex.run(imageRef, () => this.#files.deletePulled(imageRef));
    }
  }

  async #isAccessible(
    record: PulledRecord | undefined,
    image: string,
    secrets: readonly PullSecret[],
  ): Promise<boolean> {
    const known = record?.credentials.get(toRepository(image) ?? "");
    if (record === undefined || known === undefined) return false;
    if (known.isForAllPods) return true;
    const mayAdd = known.secrets.length < SECRETS_MAX;
    const hashes = new Set(known.secrets.map(({ credentialHash }) => credentialHash));
    hashes.delete("");
    // A Secret without a uid is not known to be the same object.
    const keys = new Set(known.secrets.filter(({ uid }) => uid !== "").map(secretKey));
    for (const secret of secrets) {
      const isSame = keys.has(secretKey(secret));
      const hasHash = hashes.has(secret.credentialHash);
      // The Secret whose credential was rotated remains trusted.
      if (!hasHash && !(isSame && mayAdd)) continue;
      if (mayAdd) await this.#addCredentials(image, record.imageRef, { secrets: [secret], isForAllPods: false });
      return true;
    }
    return false;
  }

  /** Undefined credentials: the image counts as pulled by the agent, and every pod must pull it. */
  async #addCredentials(image: string, imageRef: string, added: PullCredentials | undefined): Promise<void> {
    const repository = toRepository(image);
    if (repository === undefined) throw new Error(`invalid image name "${image}"`);
    const now = this.#options.clock.now();
    const before = await this.#files.readPulled(imageRef).catch(() => undefined);
    const empty: PulledRecord = { updatedAt: now, imageRef, credentials: new Map() };
    const after = added && addCredentials(before ?? empty, repository, added, now);
    if (after !== undefined || before === undefined) await this.#files.writePulled(after ?? empty);
  }

  async #endPull(image: string): Promise<void> {
    await this.#mutex.run(intentKey(image), async () => {
      const running = this.#pulls.get(image) ?? 0;
      if (running > 1) {
        this.#pulls.set(image, running - 1);
        return;
      }
      try {
        await this.#files.deleteIntent(image);
        this.#pulls.delete(image);
      } catch (error) {
        this.#options.log.error("Failed to remove image pull intent", error, { image });
      }
    });
  }

  async #completeIntents(): Promise<void> {
    const { images: service, log } = this.#options;
    const { records: intents, problems } = await this.#files.listIntents();
    for (const problem of problems) log.warn("Cannot read an image pull intent", { problem });
    if (intents.length === 0) return;
    try {
      const { images = [] } = await service.listImages({});
      for (const image of intents) {
        const present = images.find((each) => hasName(each, image));
        if (present?.id === undefined) continue;
        await this.#addCredentials(image, present.id, undefined);
        await this.#files.deleteIntent(image);
      }
    } catch (error) {
      // The intents stay: their images count as pulled by the agent.
      log.error("Failed to complete the records of image pulls", error);
    }
  }
}

/** Undefined for credentials of a service account, of which kubelet's records have no entry. */
function toPullCredentials(credential: Credential | undefined): PullCredentials | undefined {
  if (credential === undefined || credential.source.kind === "node") return { secrets: [], isForAllPods: true };
  if (credential.source.kind === "account") return undefined;
  return { secrets: [toPullSecret(credential)], isForAllPods: false };
}

function toPullSecret({ auth, source }: Credential): PullSecret {
  const { namespace = "", name = "", uid = "" } = source.kind === "secret" ? source : {};
  return { uid, namespace, name, credentialHash: hashCredential(auth) };
}

/** Whether the runtime lists the image under this name, which may lack its registry and tag. */
function hasName({ repoTags = [], repoDigests = [] }: Image, name: string): boolean {
  const reference = parseImageReference(name);
  if ("error" in reference) return false;
  const { registry, repository, withTag } = reference;
  const suffix = /(?:[:@][^/]*)$/.exec(withTag)?.[0] ?? "";
  const names = new Set([name, withTag, `${registry}/${repository}${suffix}`]);
  return [...repoTags, ...repoDigests].some((each) => names.has(each));
}

function intentKey(image: string): string {
  return `intent/${image}`;
}
