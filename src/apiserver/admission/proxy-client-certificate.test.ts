import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { createCa, issueCertificate } from "../../auth/pki/certificate-authority.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { systemClock } from "../../std/time/clock.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { until } from "../../testing/std/until.ts";
import { ProxyClientCertificate } from "./proxy-client-certificate.ts";

const ca = await createCa("clients", 1, systemClock.now());

async function issue() {
  return await issueCertificate(ca, { commonName: "front", usages: ["client"], days: 1 }, systemClock.now());
}

t.test("ProxyClientCertificate reloads its files and keeps the previous key pair when they are invalid", async (t) => {
  const directory = t.testdir();
  const files = { certFile: join(directory, "front.crt"), keyFile: join(directory, "front.key") };
  const put = ({ cert, key }: { readonly cert: string; readonly key: string }): void => {
    // A file is replaced in one step: a check that runs meanwhile reads the old text or the new one, never a part.
    for (const [file, text] of [
      [files.keyFile, key],
      [files.certFile, cert],
    ] as const) {
      writeFileSync(`${file}.new`, text);
      renameSync(`${file}.new`, file);
    }
  };
  const clock = new FakeClock();
  const errors: string[] = [];
  const log = { ...silentLogger, error: (text: string) => void errors.push(text) };
  const deps = { clock, log };
  await t.rejects(ProxyClientCertificate.open(files, deps), {
    message: /^Cannot use --proxy-client-cert-file=.* missing$/,
  });
  const [one, two] = [await issue(), await issue()];
  put(one);
  using certificate = await ProxyClientCertificate.open(files, deps);
  t.match(certificate.pair, one);
  const wait = async (): Promise<void> => {
    await new Promise((resolve) => setImmediate(resolve));
    await clock.advance(60_000);
  };
  put({ cert: two.cert, key: one.key });
  await until("the certificate is checked", () => errors.length > 0, { timeoutMs: 10_000, wait });
  t.match(certificate.pair, one);
  put(two);
  await until("the certificate is checked", () => certificate.pair?.cert === two.cert, { timeoutMs: 10_000, wait });
  t.match(certificate.pair, two);
  t.same(errors, ["Cannot reload the proxy client certificate; the previous one stays in use"], "logged once");
  t.equal((await ProxyClientCertificate.open(undefined, deps)).pair, undefined);
});
