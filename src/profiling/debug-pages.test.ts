import { gunzipSync } from "node:zlib";
import t from "tap";
import { makeRequest } from "../http/request.ts";
import { FakeClock } from "../testing/std/fake-clock.ts";
import { EventLoopContention } from "./contention.ts";
import { createDebugPages } from "./debug-pages.ts";

async function get(path: string, query = "", contention?: EventLoopContention) {
  const pages = createDebugPages({ clock: new FakeClock(), contention, setVerbosity: () => undefined });
  const found = pages.find((page) => page.path === path);
  const response = await found?.respond(makeRequest({ path, query }));
  return { ...response, bytes: Buffer.from((response?.body ?? "") as Buffer) };
}

t.test("/debug/pprof/ lists the profiles", async (t) => {
  const { status, bytes } = await get("/debug/pprof");
  t.equal(status, 200);
  for (const name of ["profile?seconds=30", "heap?seconds=10", "goroutine?debug=1", "mutex"]) {
    t.match(String(bytes), `/debug/pprof/${name}`);
  }
});

t.test("every profile of Go's runtime is served in pprof's format, and as text with debug=1", async (t) => {
  using contention = new EventLoopContention(new FakeClock());
  const first: Readonly<Record<string, RegExp>> = {
    goroutine: /^goroutine profile: total [1-9]\d*\n[1-9]\d* @ 0x1\n#\t0x1\t\w+\n/,
    threadcreate: /^threadcreate profile: total [1-9]\d*\n[1-9]\d* @ 0x1\n#\t0x1\t\S+\n/,
    block: /^--- contention:\ncycles\/second=1000000000\n/,
    mutex: /^--- mutex:\ncycles\/second=1000000000\nsampling period=0\n$/,
  };
  const timer = setTimeout(() => undefined, 60_000);
  t.teardown(() => clearTimeout(timer));
  for (const [name, text] of Object.entries(first)) {
    for (const measured of [undefined, contention]) {
      const found = await get(`/debug/pprof/${name}`, "", measured);
      t.equal(found.status, 200, name);
      t.equal(found.headers?.["content-disposition"], `attachment; filename="${name}"`);
      t.ok(gunzipSync(found.bytes).length > 0, name);
    }
    const readable = await get(`/debug/pprof/${name}`, "debug=1");
    t.match(readable.headers?.["content-type"], /^text\/plain/);
    t.match(String(readable.bytes), text, name);
  }
});
