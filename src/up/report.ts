/** The message for the operator when the cluster is ready. */
export interface Report {
  readonly server: string;
  readonly nodeName: string;
  readonly nodeIps: readonly string[];
  /** `containerd (own) at /run/svc/containerd.sock` */
  readonly runtime: string;
  readonly dataDir: string;
  readonly svcconfig: string;
  readonly controllers: readonly string[];
  readonly stopPods: boolean;
  /** Milliseconds since the start. */
  readonly startedInMs: number;
}

export function reportText(report: Report): string {
  const rows = [
    ["API server", `${report.server} (client certificates, Node,RBAC)`],
    ["Node", `${report.nodeName}, ${report.nodeIps.join(", ")}`],
    ["Runtime", report.runtime],
    ["Controllers", report.controllers.length === 0 ? "none" : report.controllers.join(", ")],
    ["State", report.dataDir],
    ["Access", `${report.svcconfig} (administrator; keep it secret)`],
  ] as const;
  const width = Math.max(...rows.map(([label]) => label.length));
  const table = rows.map(([label, value]) => `  ${label.padEnd(width)}  ${value}`).join("\n");
  const stop = report.stopPods
    ? "Ctrl-C stops svc and its pods."
    : "Ctrl-C stops svc; pods keep running (--stop-pods stops them too).";
  return `
svc is up after ${(report.startedInMs / 1000).toFixed(1)} s.

${table}

Try:
  export KUBECONFIG=${report.svcconfig}
  kubectl get nodes
  kubectl get pods --all-namespaces -o wide

${stop}
`;
}
