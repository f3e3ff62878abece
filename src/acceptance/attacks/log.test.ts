/** Log injection: client input adds no lines and no control characters to the log, and tokens are not logged. */

import { once } from "node:events";
import { join } from "node:path";
import { connect } from "node:tls";
import t, { type Test } from "tap";
import { defaultConfig } from "../../apiserver/config/default-config.ts";
import { startApiServer } from "../../apiserver/server.ts";
import { createLogger } from "../../std/log/logger.ts";
import { systemClock } from "../../std/time/clock.ts";

const TOKEN = "sesame-of-all-users";
const FORGED = '{"v":0,"msg":"all is well","ts":1}';

async function collectLog(t: Test, format: "json" | "text", requests: readonly string[]): Promise<readonly string[]> {
  const lines: string[] = [];
  const stderr = { write: (line: string) => lines.push(line), flushSync: () => {} };
  const directory = t.testdir({ tokens: `${TOKEN},ann,1\n` });
  using log = createLogger({ format, verbosity: 10 }, { stderr });
  const config = {
    ...defaultConfig,
    serving: { ...defaultConfig.serving, certDir: directory },
    authentication: { ...defaultConfig.authentication, tokenFile: join(directory, "tokens") },
    authorizationModes: ["RBAC"],
  };
  await using server = await startApiServer(config, { clock: systemClock, log });
  for (const bytes of requests) {
    const options = { port: server.address.port, host: "127.0.0.1", rejectUnauthorized: false };
    const socket = connect({ ...options, ALPNProtocols: ["http/1.1"] });
    const closed = new Promise((resolve) => socket.once("close", resolve));
    socket.on("error", () => {}).resume();
    await once(socket, "secureConnect");
    socket.write(Buffer.from(bytes, "latin1"));
    await closed;
  }
  return lines;
}

const request = (path: string, headers: string, method = "GET"): string =>
  `${method} ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${headers}\r\n\r\n`;

const HOSTILE = [
  "\x1b[2J\x1b]0;owned\x07",
  "%0a%0d%1b[31m",
  `%0a${encodeURIComponent(FORGED)}`,
  "\u009b31m",
  "%e2%80%ae",
];

const requests: readonly string[] = [
  ...HOSTILE.flatMap((text) => [
    request(`/api/v1/namespaces/${text}/pods`, "Authorization: Bearer wrong"),
    request("/version", `User-Agent: ${text}\r\nAuthorization: Bearer ${text}`),
    request("/api/v1/pods", `Authorization: Bearer ${TOKEN}\r\nImpersonate-User: ${text}`),
    request(
      "/api/v1/pods",
      `X: ${text}\r\nAuthorization: Bearer a.${Buffer.from(text, "latin1").toString("base64url")}.c`,
    ),
  ]),
  request("/api/v1/pods", `Authorization: Bearer x\n${FORGED}`),
  request(`/api/v1/secrets?token=${TOKEN}&access_token=${TOKEN}`, "Authorization: Bearer wrong"),
  request("/api/v1/secrets", `Authorization: Bearer ${TOKEN}`),
  request("/api/v1/secrets", `Authorization: Basic ${TOKEN}`),
  request("/api/v1/secrets", `Authorization: Bearer ${TOKEN}x`),
  request("/api/v1/secrets", `Cookie: ${TOKEN}\r\nX-Token: ${TOKEN}\r\nAuthorization: Bearer wrong`),
  request("/api/v1/secrets", `Authorization: Bearer ${TOKEN}\r\nImpersonate-Group: system:masters`),
  `${TOKEN}\r\n\r\n`,
];

t.test("hostile requests leave JSON log entries on one line each and no token in the log", async (t) => {
  const lines = await collectLog(t, "json", requests);
  t.ok(
    lines.some((line) => line.includes("Unable to authenticate")),
    "refusals are logged",
  );
  for (const line of lines) {
    t.equal(line.indexOf("\n"), line.length - 1, "one line");
    t.type(JSON.parse(line), "object");
    t.notMatch(line, TOKEN);
    t.notMatch(line, /^\{"v":0,"msg":"all is well"/);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: the test searches for them
    t.notMatch(line.slice(0, -1), /[\u0000-\u001f]/, "no control characters");
  }
});

t.test("hostile requests leave no control characters and no token in the text log", async (t) => {
  for (const line of await collectLog(t, "text", requests)) {
    t.equal(line.indexOf("\n"), line.length - 1, "one line");
    t.match(line, /^[IWE]\d{4} /);
    t.notMatch(line, TOKEN);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: the test searches for them
    t.notMatch(line.slice(0, -1), /[\u0000-\u001f\u007f-\u009f\u202e]/, "no control characters");
  }
});
