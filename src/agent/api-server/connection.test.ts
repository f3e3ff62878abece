import { join } from "node:path";
import t from "tap";
import { createCa, issueCertificate } from "../../auth/pki/certificate-authority.ts";
import { writeKubeconfig } from "../../client/kubeconfig/kubeconfig.ts";
import { makeRequest } from "../../http/request.ts";
import { textResponse } from "../../http/respond.ts";
import { listen } from "../../http/server/server.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { systemClock } from "../../std/time/clock.ts";
import { openConnection } from "./bootstrap.ts";

t.test(
  "openConnection() verifies the server unless the file has insecure-skip-tls-verify, then it warns",
  async (t) => {
    const now = systemClock.now();
    const ca = await createCa("ca", 1, now);
    const names = { commonName: "other", alternativeNames: ["other.example"], usages: ["server"] as const, days: 1 };
    const handler = async () => textResponse(200, "ok");
    const tls = await issueCertificate(ca, names, now);
    const listener = await listen({ handler, log: silentLogger, host: "127.0.0.1", port: 0, tls });
    t.teardown(() => listener.close(0));
    const certDir = t.testdir({});
    const svcconfig = join(certDir, "config");
    const certificates = { bootstrapSvcconfig: undefined, rotateClient: false, rotateServing: false };
    const config = { nodeName: "n1", certDir, svcconfig, certificates };
    for (const insecure of [true, false]) {
      const server = `https://127.0.0.1:${listener.port}`;
      await writeKubeconfig(svcconfig, { server, cluster: "c", user: "u", token: "t", insecure });
      const warnings: string[] = [];
      const log = { ...silentLogger, warn: (message: string) => void warnings.push(message) };
      await using connection = await openConnection(config, systemClock, log, new AbortController().signal);
      const sending = connection.transport(makeRequest({ path: "/" }));
      if (insecure) t.equal((await sending).status, 200);
      else await t.rejects(sending);
      t.equal(warnings.length, insecure ? 1 : 0);
    }
  },
);
