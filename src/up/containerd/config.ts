/** The configuration of the containerd that `svc up` looks after; containerd 1.6 and later read version 2. */

export interface ContainerdSettings {
  /** Images and snapshots; survives a reboot. */
  readonly root: string;
  /** Mounts and sockets of running containers; gone after a reboot. */
  readonly state: string;
  readonly socket: string;
  readonly pauseImage: string;
  readonly snapshotter: "overlayfs" | "native";
  readonly runc: string;
  readonly cniBinDir: string;
  readonly cniConfDir: string;
  /** Mirrors and certificates of registries: `<host>/hosts.toml`. */
  readonly registryConfigDir: string;
  /** The host lets us lower OOM scores below our own (CAP_SYS_RESOURCE). */
  readonly mayLowerOomScore: boolean;
}

/** Plugins that would look for file systems and devices a pod node does not use, or write outside our directories. */
const disabledPlugins = [
  "io.containerd.internal.v1.opt",
  "io.containerd.internal.v1.tracing",
  "io.containerd.tracing.processor.v1.otlp",
  "io.containerd.snapshotter.v1.aufs",
  "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs",
];

/**
 * Between two measurements of the writable layers of all containers, in seconds. containerd's default of 10 takes half
 * of its CPU time at rest; kubelet measures once a minute.
 */
const STATS_PERIOD_SECONDS = 30;

export function containerdConfig(settings: ContainerdSettings): string {
  const cri = `plugins."io.containerd.grpc.v1.cri"`;
  return `# Written by svc up at every start.
version = 2
root = ${text(settings.root)}
state = ${text(settings.state)}
disabled_plugins = [${disabledPlugins.map(text).join(", ")}]

[grpc]
  address = ${text(settings.socket)}

[debug]
  level = "warn"

[${cri}]
  sandbox_image = ${text(settings.pauseImage)}
  restrict_oom_score_adj = ${!settings.mayLowerOomScore}
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
  stats_collect_period = ${STATS_PERIOD_SECONDS}

[${cri}.containerd]
  snapshotter = ${text(settings.snapshotter)}
  default_runtime_name = "runc"

[${cri}.containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"

[${cri}.containerd.runtimes.runc.options]
  BinaryName = ${text(settings.runc)}
  SystemdCgroup = false

[${cri}.cni]
  bin_dir = ${text(settings.cniBinDir)}
  conf_dir = ${text(settings.cniConfDir)}

[${cri}.registry]
  config_path = ${text(settings.registryConfigDir)}
`;
}

/** A TOML basic string; JSON's escapes are among TOML's. */
function text(value: string): string {
  return JSON.stringify(value);
}
