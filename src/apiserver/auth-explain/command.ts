/** `svc apiserver auth explain`: shows how the server would authenticate credentials and authorize a request. */
import type { UserInfo } from "../../auth/user.ts";
import { type Attributes, AUTHENTICATED } from "../../auth/user.ts";
import { FlagError, type ParsedFlags } from "../../flags/flag.ts";
import { invoke } from "../../flags/program.ts";
import { GIT_VERSION } from "../../std/version.ts";
import type { ApiServerConfig } from "../config/config.ts";
import { apiServerOptions } from "../config/options.ts";
import type { CommandOutput } from "../config-check/command.ts";
import { apiserverProgram } from "../flags/flags.ts";
import { readCredentials } from "./credentials.ts";
import { explainAuthentication } from "./explain-authentication.ts";
import { explainAuthorization } from "./explain-authorization.ts";
import { explainTable } from "./flags.ts";
import { type ObjectSource, openObjects } from "./objects.ts";

type Flags = ParsedFlags<typeof explainTable>;

const program = {
  ...apiserverProgram,
  name: "svc apiserver auth explain",
  summary:
    "Shows for a token or a client certificate which authenticator accepts it and which check fails, and for a " +
    "request which authorizer, rule and binding decide. Takes the flags of the server; starts nothing. The exit code " +
    "is 1 when the credentials are refused or the request is not allowed.",
  flags: explainTable,
};

const ALLOWED = 0;
const REFUSED = 1;
const FAILED = 2;

export async function runAuthExplain(argv: readonly string[]): Promise<CommandOutput> {
  const invocation = invoke(program, argv, { version: GIT_VERSION });
  if (invocation.kind === "exit") return invocation;
  try {
    const { flags, gates, version, given } = invocation;
    const config = apiServerOptions(flags, gates, version, given);
    const attributes = requestedAttributes(flags);
    const { text, isAllowed } = await explain(flags, config, attributes);
    return { stdout: text, stderr: "", code: isAllowed ? ALLOWED : REFUSED };
  } catch (error) {
    return { stdout: "", stderr: `${program.name}: ${(error as Error).message}\n`, code: FAILED };
  }
}

async function explain(
  flags: Flags,
  config: ApiServerConfig,
  request: Omit<Attributes, "user"> | undefined,
): Promise<{ readonly text: string; readonly isAllowed: boolean }> {
  await using objects = await openObjects(flags.svcconfig, config.storage);
  const lines = [
    `Objects: ${objects?.description ?? "none but the default roles: there is no store, and no --svcconfig"}`,
  ];
  const user = await authenticate(flags, config, objects, lines);
  if (user === undefined) return { text: `${lines.join("\n")}\n`, isAllowed: false };
  if (request === undefined) return { text: `${lines.join("\n")}\n`, isAllowed: true };
  lines.push("", `Authorization of ${describeRequest(request)}`);
  const { decisions, isAllowed } = await explainAuthorization(config, { ...request, user }, objects);
  for (const { name, outcome, details } of decisions) {
    lines.push(`  ${name}: ${outcome}`, ...details.flatMap((each) => each.split("\n").map((line) => `      ${line}`)));
  }
  lines.push(isAllowed ? "  => allowed" : "  => forbidden: no authorizer allows it");
  return { text: `${lines.join("\n")}\n`, isAllowed };
}

/** Undefined: the credentials are refused. */
async function authenticate(
  flags: Flags,
  config: ApiServerConfig,
  objects: ObjectSource | undefined,
  lines: string[],
): Promise<UserInfo | undefined> {
  if (flags.user !== "") {
    const groups = [...new Set([...flags.group, AUTHENTICATED])];
    const user = { name: flags.user, uid: "", groups, extra: {} };
    lines.push("", "Authentication: not done, --user names the user", ...describeUser(user));
    return user;
  }
  const credentials = readCredentials(flags);
  lines.push("", "Credentials", ...credentials.description.map((line) => `  ${line}`), "", "Authentication");
  const { attempts, user } = await explainAuthentication(config.authentication, credentials, objects);
  for (const { name, outcome } of attempts) {
    const [first = "", ...more] = outcome.split("\n");
    lines.push(`  ${name}: ${first}`, ...more.map((line) => `      ${line}`));
  }
  lines.push(...(user === undefined ? ["  => refused: 401 Unauthorized"] : describeUser(user)));
  return user;
}

function describeUser({ name, uid, groups, extra }: UserInfo): readonly string[] {
  return [
    `  => user ${JSON.stringify(name)}${uid === "" ? "" : `, uid ${JSON.stringify(uid)}`}`,
    `     groups ${groups.join(", ")}`,
    ...Object.entries(extra).map(([key, values]) => `     extra ${key}: ${values.join(", ")}`),
  ];
}

/** Undefined: only the authentication is to be explained. */
function requestedAttributes(flags: Flags): Omit<Attributes, "user"> | undefined {
  const { verb, resource: text, namespace, name, path } = flags;
  if (verb === "" && text === "" && path === "") return undefined;
  if (verb === "") throw new FlagError(["--verb is missing: --verb=get"]);
  if ((text === "") === (path === "")) throw new FlagError(["one of --resource and --path is needed"]);
  const [qualified = "", subresource = ""] = text.split("/");
  const [resource = "", ...group] = qualified.split(".");
  const isResourceRequest = text !== "";
  return {
    verb,
    isResourceRequest,
    namespace,
    apiGroup: group.join("."),
    apiVersion: "*",
    resource,
    subresource,
    name,
    path,
  };
}

function describeRequest({
  verb,
  apiGroup,
  resource,
  subresource,
  namespace,
  name,
  path,
}: Omit<Attributes, "user">): string {
  if (resource === "") return `${verb} ${path}`;
  const qualified = [resource, ...(apiGroup === "" ? [] : [apiGroup])].join(".");
  const object = name === "" ? "" : ` ${JSON.stringify(name)}`;
  const where = namespace === "" ? "" : ` in namespace ${JSON.stringify(namespace)}`;
  return `${verb} ${qualified}${subresource === "" ? "" : `/${subresource}`}${object}${where}`;
}
