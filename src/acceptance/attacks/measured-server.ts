/** A server process with a small heap, for measurements of what single requests cost. */
import { writeFileSync } from "node:fs";
import { Agent, request } from "node:https";
import { join } from "node:path";
import { freePort } from "../../testing/std/free-port.ts";
import { LoggedProcess } from "../../testing/std/logged-process.ts";
import { until } from "../../testing/std/until.ts";
import { connectMeter, measuredProgram, type ProcessMeter } from "./process-meter.ts";

const RBAC = "/apis/rbac.authorization.k8s.io/v1";
/** The start of a response that `Answer.text` has. */
const TEXT_MAX = 2 ** 20;

export interface SentRequest {
  /** `POST /api/v1/namespaces`. */
  readonly line: string;
  readonly body?: string | Uint8Array;
  readonly type?: string;
  readonly accept?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Answer {
  readonly status: number;
  /** The start of the body. */
  readonly text: string;
  /** Length of the body. */
  readonly bytes: number;
}

export interface MeasuredServer extends Omit<ProcessMeter, "dispose">, AsyncDisposable {
  readonly log: () => string;
  send(sent: SentRequest, token: string, agent?: Agent): Promise<Answer>;
  /** Sends one object as `admin`, and returns the created one. Throws when it is refused. */
  create(path: string, body: object): Promise<CreatedObject>;
}

// biome-ignore lint/suspicious/noExplicitAny: tests read objects of every kind
type CreatedObject = any;

/**
 * Starts a server in `directory`, with the users `admin`, who may do everything, and `owner`, who may do nothing.
 * `moreFlags` are added to the command line.
 */
export async function startMeasuredServer(
  directory: string,
  moreFlags: readonly string[] = [],
): Promise<MeasuredServer> {
  const port = await freePort();
  writeFileSync(join(directory, "tokens"), "admin,admin,1,system:masters\nowner,owner,2\n");
  const flags = [
    `--kvstore-servers=level://${directory}/store`,
    `--cert-dir=${directory}/pki`,
    `--token-auth-file=${directory}/tokens`,
    "--bind-address=127.0.0.1",
    `--secure-port=${port}`,
    "--authorization-mode=RBAC",
    // Else the request may compute in a thread that neither the probe nor `busyMs` meets.
    "--workers=1",
    "--disable-admission-plugins=ServiceAccount",
    ...moreFlags,
  ];
  const turns = await freePort();
  const child = new LoggedProcess([...measuredProgram, "apiserver", ...flags], {
    logFile: join(directory, "log"),
    env: { SVC_TURNS: String(turns) },
  });
  await until(
    () => `the server serves; its log:\n${child.log}`,
    () => {
      if (!child.isRunning) throw new Error(`The server ended:\n${child.log}`);
      return child.log.includes("Serving securely");
    },
  );
  const shared = new Agent({ keepAlive: true, rejectUnauthorized: false });
  const { dispose: disposeMeter, ...meter } = connectMeter(child.pid ?? 0, turns);
  const send: MeasuredServer["send"] = (
    { line, body, type = "application/json", accept = "application/json", headers = {} },
    token,
    agent = shared,
  ) =>
    new Promise((resolve, reject) => {
      const [method, path] = line.split(" ");
      const fields = { authorization: `Bearer ${token}`, "content-type": type, accept, ...headers };
      const sent = request({ host: "127.0.0.1", port, path, method, headers: fields, agent }, (response) => {
        let text = "";
        let bytes = 0;
        response.on("data", (chunk: Buffer) => {
          bytes += chunk.length;
          if (text.length < TEXT_MAX) text += chunk.toString();
        });
        response.on("end", () => resolve({ status: response.statusCode ?? 0, text, bytes }));
        response.on("error", reject);
      });
      // A body may be refused before it is sent.
      sent.on("error", (error) =>
        body === undefined ? reject(error) : resolve({ status: 413, text: error.message, bytes: 0 }),
      );
      sent.end(body);
    });
  const create: MeasuredServer["create"] = async (path, body) => {
    const { status, text } = await send({ line: `POST ${path}`, body: JSON.stringify(body) }, "admin");
    if (status !== 201) throw new Error(`${path}: ${status} ${text.slice(0, 300)}`);
    return JSON.parse(text);
  };
  const dispose = async (): Promise<void> => {
    disposeMeter();
    shared.destroy();
    await child[Symbol.asyncDispose]();
  };
  return { ...meter, log: () => child.log, send, create, [Symbol.asyncDispose]: dispose };
}

/** Creates a service account without permissions in `default`, and returns a token of it. */
export async function createUnboundToken(server: MeasuredServer): Promise<string> {
  const accounts = "/api/v1/namespaces/default/serviceaccounts";
  await server.create(accounts, { metadata: { name: "unbound" } });
  return (await server.create(`${accounts}/unbound/token`, { spec: {} })).status.token as string;
}

/**
 * Lets `owner` do in the namespace `default` what the ClusterRole `admin` permits with a controller manager, which
 * aggregates its rules.
 */
export async function bindNamespaceAdmin(server: MeasuredServer): Promise<void> {
  const apiGroup = "rbac.authorization.k8s.io";
  const every = ["*"];
  const groups = ["", "apps", "batch", "networking.k8s.io", apiGroup];
  await server.create(`${RBAC}/namespaces/default/roles`, {
    metadata: { name: "owner" },
    rules: [
      { apiGroups: groups, resources: ["pods", "configmaps", "secrets", "services", "roles"], verbs: every },
      { apiGroups: [""], resources: ["nodes"], verbs: ["list"] },
    ],
  });
  await server.create(`${RBAC}/namespaces/default/rolebindings`, {
    metadata: { name: "owner" },
    roleRef: { apiGroup, kind: "Role", name: "owner" },
    subjects: [{ apiGroup, kind: "User", name: "owner" }],
  });
}
