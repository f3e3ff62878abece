/** Volume plugins (CSI and Flex drivers): registration, attachment, mounting. */
import { join } from "node:path";
import type { Node } from "../../../api/core/node/schema.ts";
import { StatusError } from "../../../api/status.ts";
import { csiDriverKind } from "../../../api/storage/csi-driver/kind.ts";
import type { CSIDriver } from "../../../api/storage/csi-driver/schema.ts";
import type { Client } from "../../../client/client.ts";
import type { RandomSource } from "../../../std/crypto/random.ts";
import type { Logger } from "../../../std/log/logger.ts";
import type { Clock } from "../../../std/time/clock.ts";
import { type PluginHandler, type PluginSocketObserver, watchPlugins } from "../../plugins/plugin-watcher.ts";
import type { Directories } from "../../pods/directories.ts";
import type { PodEventRecorder } from "../../pods/pod-events.ts";
import type { ClaimSource } from "../claims.ts";
import { CsiNodeWriter } from "../csi/csi-node.ts";
import { CsiVolumes } from "../csi/csi-volumes.ts";
import { CsiDriverRegistry } from "../csi/driver-registry.ts";
import type { SecretSource } from "../csi/request-fields.ts";
import { FlexDrivers } from "../flex/driver.ts";
import { FlexVolumes } from "../flex/flex-volumes.ts";
import type { Mounter } from "../mount/mounter.ts";
import type { SeLinux, SeLinuxMounts } from "../mount/selinux.ts";
import { TokenManager, type TokenRequestSource } from "../projected/token-manager.ts";
import { Attachments } from "./attachments.ts";
import { DriverVolumes } from "./driver-volumes.ts";

export interface VolumePluginsOptions {
  readonly directories: Directories;
  readonly nodeName: string;
  /** `--enable-controller-attach-detach` */
  readonly controllerAttach: boolean;
  /** `--volume-plugin-dir` */
  readonly pluginDir: string;
  /** Undefined: there is no API server. */
  readonly client: Client | undefined;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
  readonly mounter: Mounter;
  readonly events: PodEventRecorder;
  readonly secret: SecretSource;
  readonly tokens: TokenRequestSource;
  readonly claims: Pick<ClaimSource, "updateClaimSize">;
  /** See `CsiVolumesOptions`. */
  readonly seLinuxMounts?: SeLinuxMounts | undefined;
  readonly seLinux?: SeLinux | undefined;
  /** For plugins of other types, which register in the same directory. */
  readonly pluginHandlers?: Readonly<Record<string, PluginHandler>>;
  readonly pluginObserver?: PluginSocketObserver | undefined;
  readonly node: () => Promise<Node>;
  /** Called when the volumes in use, which the node's status reports, have changed. */
  readonly onInUseChange: () => void;
  /** Called when the pod's volumes may be mounted now. */
  readonly retryPod: (uid: string) => void;
  /** Called when the volumes of any pod may be mounted now. */
  readonly retryAllPods: () => void;
}

/** Below the root directory; drivers mount it. */
const REGISTRY = "plugins_registry";
/** CSIDriver objects cached for when the API server is not reachable. */
const CACHED_DRIVERS_MAX = 256;

export class VolumePlugins {
  readonly drivers: DriverVolumes;
  readonly attachments: Attachments;
  readonly #options: VolumePluginsOptions;
  readonly #csi: CsiDriverRegistry;
  readonly #csiNode: CsiNodeWriter | undefined;
  readonly #driverCache = new Map<string, CSIDriver>();

  constructor(options: VolumePluginsOptions) {
    this.#options = options;
    const { directories, nodeName, client, clock, mounter, events, secret, claims, seLinuxMounts, seLinux } = options;
    this.attachments = new Attachments({ ...options, byController: options.controllerAttach });
    this.#csiNode = client && new CsiNodeWriter({ client, nodeName });
    this.#csi = new CsiDriverRegistry({
      clock,
      csiNode: this.#csiNode,
      onChange: options.retryAllPods,
    });
    const shared = { directories, attachments: this.attachments, secret, mounter, nodeName };
    this.drivers = new DriverVolumes({
      csi: new CsiVolumes({
        ...shared,
        drivers: this.#csi,
        driverObject: (name) => this.#readDriver(name),
        tokens: new TokenManager({ source: options.tokens, clock }),
        events,
        clock,
        seLinuxMounts,
        seLinux,
      }),
      flex: new FlexVolumes({ ...shared, drivers: new FlexDrivers({ directory: options.pluginDir, clock }) }),
      claims,
    });
  }

  /** Registers drivers until the signal aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { directories, clock, random, log } = this.#options;
    const made = this.#csiNode?.create({ clock, random, log, signal });
    await watchPlugins({
      directory: join(directories.rootDir, REGISTRY),
      handlers: { ...this.#options.pluginHandlers, CSIPlugin: this.#csi },
      clock,
      random,
      log,
      observer: this.#options.pluginObserver,
      signal,
    });
    await made;
    this.#csi[Symbol.dispose]();
  }

  async #readDriver(name: string): Promise<CSIDriver | undefined> {
    const { client } = this.#options;
    if (client === undefined) return undefined;
    try {
      const found = await client.get(csiDriverKind, { name });
      this.#driverCache.delete(name);
      this.#driverCache.set(name, found);
      const [oldest] = this.#driverCache.keys();
      if (this.#driverCache.size > CACHED_DRIVERS_MAX && oldest !== undefined) this.#driverCache.delete(oldest);
      return found;
    } catch (error) {
      if (error instanceof StatusError && error.status.code === 404) {
        this.#driverCache.delete(name);
        return undefined;
      }
      const known = this.#driverCache.get(name);
      if (known === undefined) throw error;
      return known;
    }
  }
}
