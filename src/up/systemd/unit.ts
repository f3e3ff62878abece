/** The unit that runs this very command under systemd: readiness, watchdog, its own cgroup subtree. */
export interface UnitOptions {
  /** The command line as systemd is to run it, program first. */
  readonly command: readonly string[];
}

export function systemdUnit({ command }: UnitOptions): string {
  return `[Unit]
Description=svc: Kubernetes API server and node agent
Wants=network-online.target
After=network-online.target

[Service]
Type=notify
NotifyAccess=all
ExecStart=${command.map(quoted).join(" ")}
Restart=always
RestartSec=2
TimeoutStartSec=120
TimeoutStopSec=90
WatchdogSec=30
# ${podsComment(command)}
KillMode=process
Delegate=yes
OOMScoreAdjust=-999
LimitNOFILE=1048576
LimitNPROC=infinity
LimitCORE=infinity
TasksMax=infinity

[Install]
WantedBy=multi-user.target
`;
}

/** What a stop of the service does to the pods: they are children of their shims, not of the service. */
function podsComment(command: readonly string[]): string {
  return command.some((word) => /^--?stop[-_]pods(?:=(?:true|t|1))?$/i.test(word))
    ? "--stop-pods: pods stop with the service, and start with it again."
    : "Pods are children of their shims and survive a restart of the service.";
}

/** Quotes a word for systemd: escapes percent and dollar signs, and adds double quotes where they are needed. */
function quoted(word: string): string {
  const escaped = word.replaceAll("%", "%%").replaceAll("$", "$$$$");
  if (/^[-A-Za-z0-9_./:=,@%$*]+$/.test(escaped)) return escaped;
  return `"${escaped.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
}
