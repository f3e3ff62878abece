import { writeFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { issueCertificate, makeCa } from "../../auth/pki/certificate-authority.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { systemClock } from "../../std/time/clock.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { ProxyClientCertificate } from "./proxy-client-certificate.ts";

const ca = await makeCa("clients", 1, systemClock.now());

async function made() {
  return await issueCertificate(ca, { commonName: "front", usages: ["client"], days: 1 }, systemClock.now());
}

t.test("OutboundIdentity shows what its files hold now, as long as it can be used", async (t) => {
  const directory = t.testdir();
  const files = { certFile: join(directory, "front.crt"), keyFile: join(directory, "front.key") };
  const put = ({ cert, key }: { readonly cert: string; readonly key: string }): void => {
    writeFileSync(files.certFile, cert);
    writeFileSync(files.keyFile, key);
  };
  const clock = new FakeClock();
  const complaints: string[] = [];
  const log = { ...silentLogger, error: (text: string) => void complaints.push(text) };
  const deps = { clock, log };
  await t.rejects(ProxyClientCertificate.open(files, deps), { message: /^Cannot use --proxy-client-cert-file=.* missing$/ });
  const [one, two] = [await made(), await made()];
  put(one);
  using identity = await ProxyClientCertificate.open(files, deps);
  t.match(identity.pair, one);
  const until = async (isSo: () => boolean): Promise<void> => {
    for (let turn = 0; turn < 500 && !isSo(); turn++) {
      await new Promise((resolve) => setImmediate(resolve));
      await clock.advance(60_000);
    }
  };
  put({ cert: two.cert, key: one.key });
  await until(() => complaints.length > 0);
  t.match(identity.pair, one);
  put(two);
  await until(() => identity.pair?.cert === two.cert);
  t.match(identity.pair, two);
  t.same(complaints, ["Cannot use a client certificate, and goes on with what it was"], "said once");
  t.equal((await ProxyClientCertificate.open(undefined, deps)).pair, undefined);
});
