/** Identity headers: only those of a proxy with a verified client certificate authenticate a user. */
import { writeFile } from "node:fs/promises";
import { connect as connectHttp2 } from "node:http2";
import { request } from "node:https";
import { join } from "node:path";
import t from "tap";
import { defaultConfig } from "../../apiserver/config/default-config.ts";
import { startApiServer } from "../../apiserver/server.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { systemClock } from "../../std/time/clock.ts";
import {
  CLIENT_AUTH,
  makeCertificate,
  SERVER_AUTH,
  type TestCertificate,
} from "../../testing/http/test-certificates.ts";
import { fileDirectory } from "../../testing/std/file-directory.ts";

const WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
const BODY = JSON.stringify({ apiVersion: "authentication.k8s.io/v1", kind: "SelfSubjectReview" });

/** Names and values in turn, as on the wire. */
type HeaderList = readonly string[];
type Pair = Pick<TestCertificate, "cert" | "key"> | undefined;
type Authenticate = (headerList: HeaderList, pair?: Pair) => Promise<string>;

const directory = fileDirectory(t, { tokens: "sesame,ann,1\n" });
const clients = await makeCertificate({ subject: [{ CN: ["clients"] }], authority: {} });
const proxies = await makeCertificate({ subject: [{ CN: ["proxies"] }], authority: {} });
const unknownAuthority = await makeCertificate({ subject: [{ CN: ["proxies"] }], authority: {} });
const named = (issuer: TestCertificate, name: string, usages: readonly string[] = [CLIENT_AUTH]) =>
  makeCertificate({ subject: [{ CN: [name] }], issuer, usages });
const jo = await named(clients, "jo");
const front = await named(proxies, "front");

async function start() {
  const file = async (name: string, text: string): Promise<string> => {
    await writeFile(join(directory, name), text);
    return join(directory, name);
  };
  const config = {
    ...defaultConfig,
    serving: { ...defaultConfig.serving, certDir: directory },
    authentication: {
      ...defaultConfig.authentication,
      tokenFile: join(directory, "tokens"),
      clientCaFile: await file("clients.crt", clients.cert),
      requestHeader: {
        caFile: await file("proxies.crt", proxies.cert),
        allowedNames: ["front"],
        usernames: ["X-Remote-User"],
        groups: ["X-Remote-Group"],
        uids: ["X-Remote-Uid"],
        extraPrefixes: ["X-Remote-Extra-"],
      },
    },
    authorizationModes: ["RBAC"],
  };
  return await startApiServer(config, { clock: systemClock, log: silentLogger });
}

/** The user and groups of a SelfSubjectReview, or the status of the refusal. */
function userOf(status: number, text: string): string {
  if (status !== 201) return String(status);
  const { username, groups = [] } = JSON.parse(text).status.userInfo as { username: string; groups?: string[] };
  return [username, ...groups].join(" ");
}

const overHttp1 =
  (port: number): Authenticate =>
  async (headerList, pair = undefined) => {
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const headers = [
      "Host",
      "x",
      "Content-Type",
      "application/json",
      "Content-Length",
      String(BODY.length),
      ...headerList,
    ];
    const options = { host: "127.0.0.1", port, path: WHO, method: "POST", rejectUnauthorized: false, agent: false };
    const outgoing = request({ ...options, ...pair, headers: [...headers, "Connection", "close"] }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
      response.on("end", () => resolve(userOf(response.statusCode ?? 0, text)));
    });
    outgoing.on("error", reject).end(BODY);
    return await promise;
  };

const overHttp2 =
  (port: number): Authenticate =>
  async (headerList, pair = undefined) => {
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const session = connectHttp2(`https://127.0.0.1:${port}`, { rejectUnauthorized: false, ...pair });
    session.on("error", reject);
    const own = [":method", "POST", ":path", WHO, "content-type", "application/json"];
    const outgoing = session.request([
      ...own,
      ...headerList.map((text, at) => (at % 2 === 0 ? text.toLowerCase() : text)),
    ]);
    let status = 0;
    let text = "";
    outgoing.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
    outgoing.on("response", (response) => (status = Number(response[":status"])));
    outgoing.on("error", reject).on("close", () => {
      session.close();
      resolve(userOf(status, text));
    });
    outgoing.end(BODY);
    return await promise;
  };

const ROOT = ["X-Remote-User", "root", "X-Remote-Group", "system:masters"];
const HEADER_VARIANTS: readonly HeaderList[] = [
  ROOT,
  ["x-remote-user", "root", "x-remote-group", "system:masters"],
  ["X-REMOTE-USER", "root", "X-REMOTE-GROUP", "system:masters"],
  [...ROOT, ...ROOT],
  ["X_Remote_User", "root", "X_Remote_Group", "system:masters"],
  [...ROOT, "X-Remote-Uid", "0", "X-Remote-Extra-Scopes", "all"],
  ["X-Forwarded-User", "root", "X-Forwarded-Groups", "system:masters", "Remote-User", "root"],
  ["X-SSL-Client-Verify", "SUCCESS", "X-SSL-Client-S-DN", "CN=front", ...ROOT],
  ["X-Forwarded-Client-Cert", `Hash=1;Subject="CN=front"`, ...ROOT],
  ["X-Forwarded-For", "127.0.0.1", "Forwarded", "for=127.0.0.1", "X-Real-Ip", "127.0.0.1", ...ROOT],
];

for (const [protocol, over] of [["HTTP/1.1", overHttp1] as const, ["HTTP/2", overHttp2] as const]) {
  t.test(`identity headers over ${protocol} count only with the certificate of an authenticating proxy`, async (t) => {
    await using server = await start();
    const authenticate = over(server.address.port);
    const untrusted: readonly (readonly [string, Pair, string])[] = [
      ["without a certificate", undefined, "403"],
      ["with a client's certificate", jo, "jo system:authenticated"],
      ["of another authority of the same name", await named(unknownAuthority, "front"), "401"],
      ["self-signed", await makeCertificate({ subject: [{ CN: ["front"] }] }), "401"],
      ["with another name", await named(proxies, "back"), "401"],
      ["with the name in another case", await named(proxies, "Front"), "401"],
      ["with a name that has the prefix", await named(proxies, "front.example"), "401"],
      [
        "without a name",
        await makeCertificate({ subject: [{ O: ["front"] }], issuer: proxies, usages: [CLIENT_AUTH] }),
        "401",
      ],
      ["for servers", await named(proxies, "front", [SERVER_AUTH]), "401"],
      ["of the clients' authority with the proxy's name", await named(clients, "front"), "front system:authenticated"],
      ["signed with a client certificate", await named(jo, "front"), "401"],
    ];
    for (const [what, pair, expected] of untrusted) {
      for (const headerList of HEADER_VARIANTS)
        t.equal(await authenticate(headerList, pair), expected, `${what}: ${headerList.join(" ")}`);
    }
    t.equal(
      await authenticate(ROOT, front),
      "root system:masters system:authenticated",
      "the proxy's headers authenticate the user",
    );
  });

  t.test(`repeated identity headers over ${protocol} result in one user`, async (t) => {
    await using server = await start();
    const authenticate = over(server.address.port);
    const cases: readonly (readonly [HeaderList, string])[] = [
      [["X-Remote-User", "jo", "X-Remote-User", "root"], "jo system:authenticated"],
      [["X-Remote-User", "jo, root"], "jo, root system:authenticated"],
      [["X-Remote-User", "jo", "X-Remote-Group", "a, system:masters"], "jo a, system:masters system:authenticated"],
      [["X-Remote-User", "", "X-Remote-Group", "system:masters"], "401"],
      [["X-Remote-Group", "system:masters"], "401"],
    ];
    for (const [headerList, expected] of cases)
      t.equal(await authenticate(headerList, front), expected, headerList.join(" "));
    const bearer = ["Authorization", "Bearer sesame"];
    t.equal(
      await authenticate([...bearer, ...ROOT]),
      "ann system:authenticated",
      "a bearer token precedes identity headers",
    );
    // HTTP/2 clients refuse to send the header twice.
    if (protocol === "HTTP/1.1")
      t.equal(
        await authenticate([...bearer, "Authorization", "Bearer other"]),
        "ann system:authenticated",
        "the first Authorization header counts",
      );
    t.equal(await authenticate(["Authorization", "Bearer other, Bearer sesame"]), "401");
    const asRoot = ["Impersonate-User", "root", "Impersonate-Group", "system:masters"];
    for (const [headerList, pair] of [
      [asRoot, jo],
      [[...bearer, ...asRoot], undefined],
      [asRoot, undefined],
    ] as const) {
      t.equal(await authenticate(headerList, pair), "403", "impersonation without permission");
    }
    t.equal(
      await authenticate(["Impersonate-Group", "system:masters"], jo),
      "500",
      "impersonation of a group without a user",
    );
    t.equal(await authenticate(["impersonate_user", "root"], jo), "jo system:authenticated");
  });
}
