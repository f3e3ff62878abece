import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { CredentialProviders, loadPlugins } from "../../agent/images/credential-providers.ts";
import { ImageManager, type ImageManagerOptions } from "../../agent/images/image-manager.ts";
import { PullRecords } from "../../agent/images/pull-records/pull-records.ts";
import { createCriClient } from "../../agent/runtime/cri-client.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { systemClock } from "../../std/time/clock.ts";
import { findMissing, startPrivateContainerd } from "../../testing/agent/private-containerd.ts";
import { ociArchive } from "../../up/images/oci-archive.ts";
import { readBusybox } from "./example-image.ts";
import { startRegistry } from "./registry.ts";

const lacking = await findMissing();
const V1 = "credentialprovider.kubelet.k8s.io/v1";

if (lacking.length > 0) {
  console.log(`# a real containerd cannot run here (missing: ${lacking.join(", ")}): skipped`);
} else {
  t.test("ImageManager pulls from a private registry with credentials of a plugin or of a Secret", async (t) => {
    const files = [{ path: "bin" }, { path: "bin/busybox", data: readBusybox(), mode: 0o755 }];
    const architecture = process.arch === "arm64" ? "arm64" : "amd64";
    await using registry = await startRegistry(
      ociArchive({ name: "app:1", architecture, files, command: ["/bin/busybox", "true"] }),
      "puller",
      "open sesame",
    );
    await using containerd = await startPrivateContainerd();
    using cri = createCriClient({ endpoint: containerd.endpoint, requestTimeoutMs: 60_000, clock: systemClock });
    const events: string[] = [];
    const recordEvent = (_pod: unknown, ...words: readonly unknown[]): void =>
      void events.push(words.map(String).join(" "));
    const manager = (more: Partial<ImageManagerOptions>) =>
      new ImageManager({
        images: cri.images,
        clock: systemClock,
        events: { recordPodEvent: recordEvent, recordContainerEvent: recordEvent },
        getSecret: async () => undefined,
        serialize: true,
        qps: 0,
        burst: 0,
        ...more,
      });
    const image = `${registry.host}/team/app:1`;
    const pod = { metadata: { name: "p", namespace: "ns", uid: "u1" }, spec: { containers: [] } };
    const container = { name: "c", image, imagePullPolicy: "Always" } as const;
    const pull = (by: ImageManager, ofPod: object = pod) =>
      by.ensureImage(ofPod, container, "containers", new AbortController().signal);
    await t.rejects(pull(manager({})), /authorization failed|401/, "without credentials");

    const auth = { username: "puller", password: "open sesame" };
    const binDir = join(containerd.directory, "plugins");
    mkdirSync(binDir);
    const kind = "CredentialProviderResponse";
    const response = { apiVersion: V1, kind, cacheKeyType: "Registry", auth: { [registry.host]: auth } };
    const script = `#!/bin/sh\nread -r request\ncat <<'END'\n${JSON.stringify(response)}\nEND\n`;
    writeFileSync(join(binDir, "plug"), script, { mode: 0o755 });
    const config = join(containerd.directory, "providers.yaml");
    const provider = `{name: plug, matchImages: ["${registry.host}/team"], defaultCacheDuration: 1m`;
    const head = "apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\nproviders:\n";
    writeFileSync(config, `${head}- ${provider}, apiVersion: ${V1}}\n`);
    const plugins = await loadPlugins({ config, binDir, tokens: false });
    if (plugins === undefined) throw new Error("there is a plugin");
    const accounts = { account: async () => undefined, token: async () => "", forget: () => undefined };
    using providers = new CredentialProviders({ ...plugins, accounts, clock: systemClock, log: silentLogger });
    const pulled = await pull(manager({ providers }));
    t.match(pulled.ref, /^sha256:/);
    t.same([...registry.served], ["puller"]);
    t.match(events.at(-1), /Pulled Successfully pulled image .* Image size: [1-9]\d* bytes\.$/);

    const data = { ".dockerconfigjson": JSON.stringify({ auths: { [`https://${registry.host}/v2/`]: auth } }) };
    const withSecret = { ...pod, spec: { containers: [], imagePullSecrets: [{ name: "s" }] } };
    t.equal((await pull(manager({ getSecret: async () => data }), withSecret)).ref, pulled.ref);
    const wrong = { ".dockerconfigjson": JSON.stringify({ auths: { [registry.host]: { ...auth, password: "x" } } }) };
    await t.rejects(pull(manager({ getSecret: async () => wrong }), withSecret), /authorization failed|401/);

    const pullRecords = await PullRecords.open({
      config: { policy: "NeverVerifyPreloadedImages", allowlist: [] },
      rootDir: join(containerd.directory, "agent"),
      images: cri.images,
      clock: systemClock,
      log: silentLogger,
    });
    /** Resolves with the last event. */
    const use = async (secret: typeof data | undefined, uid = "s1"): Promise<string | undefined> => {
      const by = manager({ pullRecords, getSecret: async () => secret, getSecretUid: async () => uid });
      const ofPod = secret === undefined ? pod : withSecret;
      const present = { ...container, imagePullPolicy: "IfNotPresent" } as const;
      await by.ensureImage(ofPod, present, "containers", new AbortController().signal);
      return events.at(-1);
    };
    const accessible = /already present on machine and can be accessed by the pod$/;
    t.match(await use(undefined), accessible, "the image counts as preloaded");
    await pull(manager({ pullRecords, getSecret: async () => data, getSecretUid: async () => "s1" }), withSecret);
    t.match(await use(data), accessible, "the Secret that has pulled it");
    await t.rejects(use(undefined), /authorization failed|401/, "a pod of another tenant");
    await t.rejects(use(wrong, "s2"), /authorization failed|401/);
  });
}
