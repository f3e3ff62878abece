import t from "tap";
import { invoke } from "../../flags/program.ts";
import { startTestServer } from "../../testing/apiserver/server-fixture.ts";
import { defaultConfig } from "../config/default-config.ts";
import { apiServerOptions } from "../config/options.ts";
import { apiserverProgram } from "../flags/flags.ts";

function observed(...words: readonly string[]) {
  const invocation = invoke(apiserverProgram, words, { version: "v1.33.0" });
  if (invocation.kind === "exit") throw new Error(invocation.stderr);
  return apiServerOptions(invocation.flags, invocation.gates, invocation.version).observability;
}

const asText = { headers: { accept: "text/plain" } };
const GATES = "--feature-gates=ComponentFlagz=true,ComponentStatusz=true";

t.test("/flagz and /statusz get 404 without their feature gates", async (t) => {
  await using server = await startTestServer({ observability: defaultConfig.observability });
  t.equal((await server.send("GET /flagz")).status, 404);
  t.equal((await server.send("GET /statusz")).status, 404);
});

t.test("/flagz lists every flag with its value", async (t) => {
  await using server = await startTestServer({
    observability: observed(GATES, "--event-ttl=2h", "--token-auth-file=/etc/t"),
  });
  const { text, headers } = await server.send("GET /flagz", asText);
  t.equal(headers["content-type"], "text/plain; charset=utf-8");
  t.match(text, /^\nkube-apiserver flagz\nWarning: This endpoint is not meant to be machine parseable/);
  t.match(text, "\nevent-ttl=2h0m0s\n");
  t.match(text, "\ntoken-auth-file=/etc/t\n", "the file, not its content");
  t.match(text, "\nsecure-port=6443\n");
  const names = [...text.matchAll(/^([\w-]+)=/gm)].map(([, name]) => name);
  t.same(names, [...names].sort());
  t.equal((await server.send("GET /flagz")).status, 406, "as Kubernetes, without a header");
  const refused = await server.send("GET /flagz", { headers: { accept: "application/json" } });
  t.match(refused, { status: 406, text: "media type not acceptable, must be: text/plain\n" });
});

t.test("/statusz has start time, uptime and versions", async (t) => {
  const apis = { ...defaultConfig.apis, emulatedVersion: "1.32" };
  await using server = await startTestServer({ observability: observed(GATES), gitVersion: "v1.33.0+svc.1", apis });
  await server.clock.advance(3_725_000);
  const { text } = await server.send("GET /statusz", asText);
  t.match(text, /^\nkube-apiserver statusz\nWarning: /);
  t.match(text, /\nStarted: \w{3} \w{3} [ 1-3]\d \d\d:\d\d:\d\d UTC \d{4}\nUp: /);
  t.match(text, "\nUp: 1 hr 02 min 05 sec\n");
  t.match(text, "\nBinary version: 1.33.0+svc.1\nEmulation version: 1.32\n");
});
