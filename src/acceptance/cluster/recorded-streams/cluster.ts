/** A cluster with the pods and users of the recordings. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { issueCertificate } from "../../../auth/pki/certificate-authority.ts";
import { systemClock } from "../../../std/time/clock.ts";
import { until } from "../../../testing/std/until.ts";
import { ociArchive } from "../../../up/images/oci-archive.ts";
import { TestCluster } from "../cluster.ts";
import { readBusybox } from "../example-image.ts";
import { type Identity, type RecordedCase, type ReplayTarget, readPods } from "./recording.ts";

export const NAMESPACE = "st";
const NODE = "e2e";
/** Before all lines of all logs. */
const OLD_TIME = "2020-01-01T00:00:00Z";
const USERS: Readonly<Record<string, { readonly user: string; readonly groups?: readonly string[] }>> = {
  admin: { user: "admin", groups: ["system:masters"] },
  none: { user: "nobody" },
  getter: { user: "getter" },
  creator: { user: "creator" },
  reader: { user: "reader" },
};
const STREAMS = ["pods/exec", "pods/attach", "pods/portforward", "pods/proxy"];
const NODE_PAGES = ["pods", "healthz", "metrics", "configz", "stats", "log"].map((name) => `nodes/${name}`);

interface PodStatus {
  readonly metadata: { readonly name: string; readonly uid: string };
  readonly status: { readonly phase: string; readonly containerStatuses?: readonly { readonly state: object }[] };
}

export class RecordedCluster implements AsyncDisposable, ReplayTarget {
  readonly #cluster: TestCluster;
  readonly #images: string;
  readonly #identities = new Map<string, Identity>();
  #agent = { host: "", port: 0 };
  #webUid = "";

  private constructor(cluster: TestCluster, images: string) {
    this.#cluster = cluster;
    this.#images = images;
  }

  static async start(program: readonly string[], gates: string): Promise<RecordedCluster> {
    const images = mkdtempSync(join(tmpdir(), "svc-streams-"));
    writeFileSync(join(images, "bb.tar"), makeImage());
    const cluster = new RecordedCluster(
      await TestCluster.create({ program, imageDir: images, flags: [`--feature-gates=${gates}`] }),
      images,
    );
    try {
      await cluster.#prepare();
      return cluster;
    } catch (error) {
      await cluster[Symbol.asyncDispose]();
      throw error;
    }
  }

  get apiPort(): number {
    return this.#cluster.port;
  }

  get agent(): { readonly host: string; readonly port: number } {
    return this.#agent;
  }

  /** A client with all rights at the agent. */
  get admin(): Identity {
    return this.#identities.get("agent admin") ?? {};
  }

  address({ to }: RecordedCase): { host: string; port: number } {
    return to === "agent" ? this.#agent : { host: "127.0.0.1", port: this.#cluster.port };
  }

  /** `auth` cases without a user are anonymous, all others have all rights. */
  identity({ as, id, to }: RecordedCase): Identity {
    if (as === "bad") return { token: "bad" };
    if (as === "nobody" || (as === undefined && id.startsWith("auth-"))) return {};
    return this.#identities.get(`${to} ${as ?? "admin"}`) ?? {};
  }

  /** Fills in the placeholders of a path. */
  path({ request }: RecordedCase, pod: string): string {
    return this.replacePath(request.path, pod);
  }

  replacePath(recorded: string, pod = ""): string {
    const values = {
      $NS: NAMESPACE,
      $NODE: NODE,
      $POD: pod,
      $UID: this.#webUid,
      $AGENTPORT: String(this.#agent.port),
      "<time>": OLD_TIME,
    };
    return Object.entries(values).reduce((path, [name, value]) => path.replaceAll(name, value), recorded);
  }

  replace(text: string): string {
    return text.replaceAll("stock", NODE);
  }

  log(): string {
    return this.#cluster.log();
  }

  /** Creates the pod of a template; resolves when its container runs or has ended. */
  async createPod(template: string, name: string): Promise<void> {
    const pod = readPods(NODE).templates[template];
    await this.#apply([JSON.parse(JSON.stringify(pod).replaceAll("$POD", name)) as object]);
    await until(`pod ${name} to run`, async () => {
      const [{ status }] = (await this.#get<PodStatus>("pod", name)) as [PodStatus];
      return status.containerStatuses?.some(({ state }) => !("waiting" in state));
    });
  }

  async deletePod(name: string): Promise<void> {
    await this.#kubectl("delete", "pod", name, "--force", "--grace-period=0", "--wait=false");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#cluster[Symbol.asyncDispose]();
    rmSync(this.#images, { recursive: true });
  }

  async #prepare(): Promise<void> {
    await this.#cluster.start("--stop-pods");
    await this.#issueCertificates();
    await this.#kubectl("create", "namespace", NAMESPACE);
    const { standing, ephemeral } = readPods(NODE);
    await this.#apply([...rights(), ...standing.filter(({ metadata: { name } }) => name !== "hostnet")]);
    const [node] = await this.#get<{
      readonly status: {
        readonly addresses: readonly { readonly type: string; readonly address: string }[];
        readonly daemonEndpoints: { readonly kubeletEndpoint: { readonly Port: number } };
      };
    }>("node", NODE);
    const host = node?.status.addresses.find(({ type }) => type === "InternalIP")?.address ?? "";
    this.#agent = { host, port: node?.status.daemonEndpoints.kubeletEndpoint.Port ?? 0 };
    const isRunning = async (name: string, phase: string): Promise<PodStatus | undefined> => {
      const [pod] = await this.#get<PodStatus>("pod", name);
      return pod?.status.phase === phase ? pod : undefined;
    };
    const web = await until("pod web to run", () => isRunning("web", "Running"));
    this.#webUid = web.metadata.uid;
    const patch = JSON.stringify({ spec: { ephemeralContainers: [ephemeral.web] } });
    await this.#kubectl("patch", "pod", "web", "--subresource=ephemeralcontainers", "-p", patch);
    await until("pod done", () => isRunning("done", "Succeeded"));
    await until("pod failed", () => isRunning("failed", "Failed"));
    await until("pod one to run", () => isRunning("one", "Running"));
    await until("all lines of pod ten", async () => {
      const { stdout } = await this.#cluster.kubectl(["-n", NAMESPACE, "logs", "ten"]);
      return stdout.includes("err 10") || undefined;
    });
    await until("the ephemeral container", async () => {
      const { stdout } = await this.#cluster.kubectl(["-n", NAMESPACE, "get", "pod", "web", "-o", "json"]);
      return stdout.includes('"ephemeralContainerStatuses"') && /"name": "eph".*"running"/s.test(stdout);
    });
  }

  async #issueCertificates(): Promise<void> {
    const read = (name: string): string => readFileSync(join(this.#cluster.dataDir, "pki", name), "utf8");
    for (const [to, name] of [
      ["api", "ca"],
      ["agent", "agent-ca"],
    ] as const) {
      const ca = { cert: read(`${name}.crt`), key: read(`${name}.key`) };
      for (const [as, { user: commonName, groups = [] }] of Object.entries(USERS)) {
        const subject = {
          commonName,
          organizations: groups,
          alternativeNames: [],
          usages: ["client" as const],
          days: 1,
        };
        this.#identities.set(`${to} ${as}`, await issueCertificate(ca, subject, systemClock.now()));
      }
    }
  }

  async #apply(items: readonly object[]): Promise<void> {
    const input = JSON.stringify({ apiVersion: "v1", kind: "List", items });
    const { code, stderr } = await this.#cluster.kubectl(["-n", NAMESPACE, "apply", "-f", "-"], { input });
    if (code !== 0) throw new Error(stderr);
  }

  async #get<T>(kind: string, name: string): Promise<readonly T[]> {
    return [JSON.parse(await this.#kubectl("get", kind, name, "-o", "json")) as T];
  }

  async #kubectl(...args: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await this.#cluster.kubectl(["-n", NAMESPACE, ...args]);
    if (code !== 0) throw new Error(`kubectl ${args.join(" ")}: ${stderr}`);
    return stdout;
  }
}

function rights(): readonly object[] {
  const role = (user: string, kind: "Role" | "ClusterRole", rules: readonly object[]): readonly object[] => [
    { apiVersion: "rbac.authorization.k8s.io/v1", kind, metadata: { name: user }, rules },
    {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: `${kind}Binding`,
      metadata: { name: user },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind, name: user },
      subjects: [{ apiGroup: "rbac.authorization.k8s.io", kind: "User", name: user }],
    },
  ];
  const rule = (verb: string, resources: readonly string[]): object => ({ apiGroups: [""], verbs: [verb], resources });
  return [
    ...role("getter", "Role", [rule("get", STREAMS)]),
    ...role("creator", "Role", [rule("create", STREAMS)]),
    ...role("getter", "ClusterRole", [rule("get", NODE_PAGES)]),
    ...role("creator", "ClusterRole", [rule("create", ["nodes/proxy"])]),
    ...role("reader", "ClusterRole", [rule("get", ["nodes/proxy"])]),
  ];
}

/** The image of the recordings: busybox with all its commands. */
function makeImage(): Buffer {
  const applets = execFileSync("busybox", ["--list"], { encoding: "utf8" }).trim().split("\n");
  return ociArchive({
    name: "localhost/bb:1",
    architecture: process.arch === "arm64" ? "arm64" : "amd64",
    files: [
      { path: "bin" },
      { path: "bin/busybox", data: readBusybox(), mode: 0o755 },
      ...applets.filter((name) => name !== "busybox").map((name) => ({ path: `bin/${name}`, link: "busybox" })),
      { path: "etc" },
      { path: "etc/passwd", data: Buffer.from("root:x:0:0:root:/root:/bin/sh\n") },
      { path: "etc/group", data: Buffer.from("root:x:0:\n") },
      { path: "tmp", mode: 0o1777 },
    ],
    command: ["/bin/sh"],
  });
}
