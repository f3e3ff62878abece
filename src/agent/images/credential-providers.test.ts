import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import t, { type Test } from "tap";
import type { Pod } from "../../api/core/pod/schema.ts";
import { createLogger } from "../../std/log/logger.ts";
import { MetricRegistry } from "../../std/metrics/metrics.ts";
import { formatMetrics } from "../../std/metrics/text-format.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { type CredentialProvider, parseCredentialProviders } from "../config/credential-providers.ts";
import { createCredentialPluginMetrics } from "../metrics/plugin-metrics.ts";
import { parseResponse } from "./credential-plugin-response.ts";
import { CredentialProviders, loadPlugins } from "./credential-providers.ts";

const V1 = "credentialprovider.kubelet.k8s.io/v1";
const pod: Pod = {
  metadata: { name: "p", namespace: "ns", uid: "u1" },
  spec: { containers: [], serviceAccountName: "puller" },
};

const makeResponse = (members: object = {}) =>
  JSON.stringify({
    apiVersion: V1,
    kind: "CredentialProviderResponse",
    cacheKeyType: "Image",
    auth: { "r.test": { username: "u", password: "secret-word" } },
    ...members,
  });

/** A plugin that logs its requests, and writes the file `response`. */
function setUp(t: Test, more: Partial<CredentialProvider> = {}) {
  const binDir = t.testdir();
  const script = `#!/bin/sh
read -r request; printf '%s\\n' "$request" >> ${binDir}/requests; echo "$PLUGIN_MODE $*" >> ${binDir}/calls
exec cat ${binDir}/response`;
  plugin(binDir, "plug", script);
  const setResponse = (text: string): void => writeFileSync(join(binDir, "response"), text);
  setResponse(makeResponse());
  const provider: CredentialProvider = {
    name: "plug",
    matchImages: ["r.test", "*.r.test"],
    defaultCacheDuration: "1m0s",
    apiVersion: V1,
    ...more,
  };
  const clock = new FakeClock();
  const lines: string[] = [];
  const sink = { write: (line: string) => void lines.push(line), flushSync: () => undefined };
  const log = createLogger({ verbosity: 5 } as never, { clock, stdout: sink, stderr: sink } as never);
  const annotations: Record<string, string> = {};
  const metrics = new MetricRegistry();
  const providers = new CredentialProviders({
    providers: [provider],
    binDir,
    clock,
    log,
    observer: createCredentialPluginMetrics(metrics),
    accounts: {
      account: async (_namespace, name) =>
        name === "puller" ? { metadata: { name, uid: "a1", annotations } } : undefined,
      token: async (_pod, audience) => `token-for-${audience}`,
      forget: () => undefined,
    },
  });
  const read = (name: string) =>
    existsSync(join(binDir, name)) ? readFileSync(join(binDir, name), "utf8").trim().split("\n") : [];
  const requests = () => read("requests").map((line) => JSON.parse(line) as Record<string, unknown>);
  return { binDir, providers, metrics, clock, lines, setResponse, annotations, requests, calls: () => read("calls") };
}

function plugin(binDir: string, name: string, script: string): void {
  writeFileSync(join(binDir, name), script);
  chmodSync(join(binDir, name), 0o755);
}

t.test("CredentialProviders.getCredentials() runs the plugins whose patterns match the image", async (t) => {
  const env = [{ name: "PLUGIN_MODE", value: "edge" }];
  const { providers, requests, calls } = setUp(t, { args: ["--region", "north"], env });
  t.same(await providers.getCredentials(pod, "other.test/x"), []);
  const [found] = await providers.getCredentials(pod, "r.test/team/app");
  t.match([...(found?.auths ?? [])], [["r.test", { username: "u" }]]);
  t.equal(found?.isForAccount, false);
  t.same(requests(), [{ kind: "CredentialProviderRequest", apiVersion: V1, image: "r.test/team/app" }]);
  t.same(calls(), ["edge --region north"]);
});

t.test("CredentialProviders.getCredentials() caches by image, by registry, or globally", async (t) => {
  const images = ["r.test/a", "r.test/a", "r.test/b", "x.r.test/b"];
  for (const [cacheKeyType, runs] of [
    ["Image", 3],
    ["Registry", 2],
    ["Global", 1],
  ] as const) {
    const { providers, setResponse, requests } = setUp(t, {});
    setResponse(makeResponse({ cacheKeyType }));
    for (const image of images) t.equal((await providers.getCredentials(pod, image)).length, 1);
    t.equal(requests().length, runs, cacheKeyType);
  }
});

t.test(
  "CredentialProviders.getCredentials() caches for the plugin's duration, else for the configured one",
  async (t) => {
    const { providers, setResponse, requests, clock } = setUp(t);
    const get = () => providers.getCredentials(pod, "r.test/a");
    await Promise.all([get(), get()]);
    t.equal(requests().length, 1, "concurrent requests run the plugin once");
    await clock.advance(59_000);
    await get();
    t.equal(requests().length, 1);
    await clock.advance(1000);
    setResponse(makeResponse({ cacheDuration: "10s" }));
    await get();
    clock.set(0);
    await clock.advance(10_000);
    setResponse(makeResponse({ cacheDuration: "0s" }));
    await get();
    await get();
    t.equal(requests().length, 4);
  },
);

t.test("CredentialProviders.getCredentials() ignores a plugin that fails, and logs no secrets", async (t) => {
  const { metrics, providers, setResponse, lines, binDir } = setUp(t);
  const fails = async (why: RegExp) => {
    lines.length = 0;
    t.same(await providers.getCredentials(pod, "r.test/a"), []);
    t.match(lines.join(""), why);
    t.notMatch(lines.join(""), /secret-word/);
  };
  setResponse(`${makeResponse()}x`);
  await fails(/error execing credential provider plugin .* for image r\.test\/a: .*invalid JSON/);
  setResponse(makeResponse({ apiVersion: "credentialprovider.kubelet.k8s.io/v1beta1" }));
  await fails(/did not match expected apiVersion/);
  setResponse(makeResponse({ cacheKeyType: "Pod" }));
  await fails(/valid cacheKeyType/);
  plugin(binDir, "plug", "#!/bin/sh\necho no cloud here >&2; exit 3");
  await fails(/exit status 3: no cloud here/);
  const text = formatMetrics([metrics], "prometheus");
  t.match(text, /^kubelet_credential_provider_plugin_errors\{plugin_name="plug"\} 4$/m);
  t.match(text, /^kubelet_credential_provider_plugin_duration_count\{plugin_name="plug"\} 4$/m);
});

t.test("CredentialProviders terminates a plugin after a minute, or when the agent stops", async (t) => {
  const { providers, clock, binDir, lines } = setUp(t);
  plugin(binDir, "plug", `#!/bin/sh\necho $$ > ${binDir}/pid; sleep 1000`);
  const runs = async (image: string) => {
    const pending = providers.getCredentials(pod, image);
    while (!existsSync(join(binDir, "pid")) || readFileSync(join(binDir, "pid"), "utf8") === "") {
      await new Promise((resolve) => setImmediate(resolve));
    }
    return { pending, pid: Number(readFileSync(join(binDir, "pid"), "utf8")) };
  };
  const late = await runs("r.test/a");
  await clock.advance(60_000);
  t.same(await late.pending, []);
  t.match(lines.join(""), /no answer within 60 seconds/);
  t.throws(() => process.kill(late.pid, 0), { code: "ESRCH" });
  writeFileSync(join(binDir, "pid"), "");
  const stopped = await runs("r.test/b");
  providers[Symbol.dispose]();
  await t.rejects(stopped.pending, /the agent stops/);
});

t.test(
  "CredentialProviders.getCredentials() passes a token of the pod's service account to plugins that require it",
  async (t) => {
    const tokenAttributes = {
      serviceAccountTokenAudience: "registry",
      requireServiceAccount: true,
      requiredServiceAccountAnnotationKeys: ["domain.test/role"],
      optionalServiceAccountAnnotationKeys: ["domain.test/zone"],
    };
    const { providers, requests, annotations } = setUp(t, { tokenAttributes });
    const image = "r.test/a";
    t.same(await providers.getCredentials(pod, image), [], "the service account lacks an annotation");
    t.same(
      await providers.getCredentials({ ...pod, spec: { containers: [] } }, image),
      [],
      "the pod has no service account",
    );
    annotations["domain.test/role"] = "reader";
    annotations.other = "not passed on";
    const [found] = await providers.getCredentials(pod, image);
    t.equal(found?.isForAccount, true);
    t.match(requests(), [
      { serviceAccountToken: "token-for-registry", serviceAccountAnnotations: { "domain.test/role": "reader" } },
    ]);
    t.notMatch(requests(), [{ serviceAccountAnnotations: { other: String } }]);
    await providers.getCredentials(pod, image);
    t.equal(requests().length, 1);
    annotations["domain.test/role"] = "writer";
    await providers.getCredentials(pod, image);
    t.equal(requests().length, 2, "a changed service account has another cache key");
  },
);

t.test("parseResponse() parses and validates the response of a plugin", async (t) => {
  const read = parseResponse(makeResponse({ cacheDuration: "1h30m", more: 1 }), V1);
  t.match(read, { cacheKeyType: "Image", cacheMs: 5_400_000 });
  t.equal(parseResponse(makeResponse(), V1).cacheMs, undefined);
  t.throws(() => parseResponse("[]", V1), /not a JSON object/);
  t.throws(() => parseResponse(makeResponse({ kind: "Pod" }), V1), /wrong Kind/);
  t.throws(() => parseResponse(makeResponse({ auth: "x" }), V1), /field auth/);
});

const file = (providers: string, version = "kubelet.config.k8s.io/v1") =>
  `apiVersion: ${version}\nkind: CredentialProviderConfig\nproviders:\n${providers}`;
const good = (name: string) =>
  `- {name: ${name}, matchImages: ["*.r.test"], defaultCacheDuration: 10m, apiVersion: ${V1}}\n`;

t.test("parseCredentialProviders() reads every version strictly", async (t) => {
  for (const group of ["kubelet.config.k8s.io", "svclet.config.svc.io"]) {
    for (const version of ["v1", "v1beta1", "v1alpha1"]) {
      t.same(parseCredentialProviders(file(good("a"), `${group}/${version}`)).problems, []);
    }
  }
  const problems = (text: string) => parseCredentialProviders(text).problems.join("; ");
  t.match(problems(""), /0 documents/);
  t.match(problems("[]"), /not an object/);
  t.match(problems("kind: Pod"), /wrong Kind/);
  t.match(problems(file(good("a"), "x/v1")), /unexpected Group: x/);
  t.match(problems(file(good("a"), "kubelet.config.k8s.io/v2")), /there is no version/);
  t.match(problems(file("- {name: a, nam: b}\n")), /unknown field providers\[0\]\.nam/);
  t.match(problems(file("- {name: 3}\n")), /field providers\[0\]\.name/);
  const tokens = "- {name: a, tokenAttributes: {}}\n";
  t.match(problems(file(tokens, "kubelet.config.k8s.io/v1beta1")), /unknown field providers\[0\]\.tokenAttributes/);
});

t.test("loadPlugins() rejects with all errors of the configuration", async (t) => {
  const open = (text: string, tokens = false) => {
    const directory = t.testdir({ "config.yaml": text, bin: { a: "", "b.txt": "" } });
    return loadPlugins({ config: join(directory, "config.yaml"), binDir: join(directory, "bin"), tokens });
  };
  const fails = (text: string, ...expected: RegExp[]) =>
    t.rejects(open(text), { message: new RegExp(expected.map((each) => each.source).join(".*"), "s") });
  t.equal(await loadPlugins(undefined), undefined);
  await fails(file("[]\n").replace("providers:\n", "providers: "), /providers: Required value: at least 1 item/);
  await fails(file(good("../x")), /name: Invalid value: "\.\.\/x": provider name cannot contain path separators/);
  await fails(file(good("..")), /provider name cannot be '\.\.'/);
  await fails(file(good("a") + good("a")), /providers\[1\]\.name: Duplicate value: "a"/);
  await fails(
    file("- {name: a b}\n"),
    /cannot contain spaces/,
    /apiVersion: Required value/,
    /matchImages: Required/,
    /defaultCacheDuration: Required/,
  );
  await fails(file(good("a").replace(V1, "v7").replace("10m", "-10m")), /Unsupported value: "v7"/, /-10m/);
  await fails(file(good("a").replace("*.r.test", "r.test:x")), /match image is invalid: invalid port/);
  await fails(file(good("none")), /plugin binary executable .*bin\/none did not exist/);
  await fails(file(good("a")), /plugin binary .*bin\/a is not executable/);
  await t.rejects(loadPlugins({ config: "/nowhere", binDir: "/", tokens: false }), /unable to access path/);
});

t.test("loadPlugins() accepts tokenAttributes only with the feature gate, and only if complete", async (t) => {
  const withTokens = (attributes: string) => file(good("a").replace("}", `, tokenAttributes: ${attributes}}`));
  const open = (attributes: string, tokens: boolean) => {
    const directory = t.testdir({ "config.yaml": withTokens(attributes), bin: { a: "" } });
    chmodSync(join(directory, "bin/a"), 0o755);
    return loadPlugins({ config: join(directory, "config.yaml"), binDir: join(directory, "bin"), tokens });
  };
  const whole = "{serviceAccountTokenAudience: x, requireServiceAccount: true}";
  t.match(await open(whole, true), { providers: [{ tokenAttributes: { requireServiceAccount: true } }] });
  await t.rejects(open(whole, false), /SvcletServiceAccountTokenForCredentialProviders feature gate is disabled/);
  await t.rejects(open("{}", true), /serviceAccountTokenAudience is required.*requireServiceAccount is required/);
  const keys = "requiredServiceAccountAnnotationKeys: [a/b, a/b, '-'], optionalServiceAccountAnnotationKeys: [a/b]";
  const all = `{serviceAccountTokenAudience: x, requireServiceAccount: false, ${keys}}`;
  await t.rejects(
    open(all, true),
    /cannot be false when.*Duplicate value: "a\/b".*cannot be both required and optional/s,
  );
});

t.test("loadPlugins() merges the files of a directory in the order of their names", async (t) => {
  const directory = t.testdir({
    config: { "20.yaml": file(good("b")), "10.json": JSON.stringify(providersJson()), README: "no configuration" },
    bin: { a: "", b: "" },
    empty: {},
  });
  for (const name of ["a", "b"]) chmodSync(join(directory, "bin", name), 0o755);
  mkdirSync(join(directory, "config", "sub"));
  const binDir = join(directory, "bin");
  const found = await loadPlugins({ config: join(directory, "config"), binDir, tokens: false });
  t.same(
    found?.providers.map(({ name }) => name),
    ["a", "b"],
  );
  const empty = { config: join(directory, "empty"), binDir, tokens: false };
  await t.rejects(loadPlugins(empty), /no configuration files found in directory/);
});

function providersJson(): object {
  const provider = { name: "a", matchImages: ["r.test"], defaultCacheDuration: "0s", apiVersion: V1 };
  return { apiVersion: "svclet.config.svc.io/v1", kind: "CredentialProviderConfig", providers: [provider] };
}
