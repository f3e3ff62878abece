/** What responses keep in memory: bytes of their own, and nothing of kinds that are not served any more. */
import t from "tap";
import type { Kind } from "../../api/kind.ts";
import { Scheme } from "../../api/scheme.ts";
import type { Revision } from "../../storage/store.ts";
import { EncodedObject } from "../../storage/watch/encoded-object.ts";
import type { CacheEvent } from "../../storage/watch/watch-event.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { bytesLeftPerCall } from "../../testing/std/heap-growth.ts";
import { makeWidget, type Widget, widgetKind } from "../../testing/storage/widget.ts";
import { OpenApi } from "../openapi/openapi.ts";
import type { ResponseOptions } from "./object-response.ts";
import { typeMetaOf, typeMetaPrefix } from "./type-meta.ts";
import { streamWatchFrames } from "./watch-stream.ts";

t.test("frames that watchers share are no slices of a pool", async (t) => {
  const typeMeta = typeMetaOf(widgetKind as Kind, widgetKind.group);
  for (const format of ["json", "protobuf", "cbor"] as const) {
    const representation = { as: "object", format, magic: "k8s" };
    const options = { typeMeta, representation, table: {} } as unknown as ResponseOptions;
    const item = new EncodedObject(widgetKind, "/w/a", makeWidget("a"), 1 as Revision);
    const events = async function* (): AsyncGenerator<CacheEvent<Widget>> {
      yield item.added;
    };
    const frameOptions = { kind: widgetKind, responseOptions: options, clock: new FakeClock() };
    for await (const frame of streamWatchFrames(events(), () => {}, frameOptions)) {
      t.equal(frame.buffer.byteLength, frame.byteLength, format);
    }
  }
});

t.test("documents of definitions that come and go leave nothing", async (t) => {
  const scheme = new Scheme();
  const openApi = new OpenApi(scheme, { served: false, listed: false }, "v1.33.0", new FakeClock());
  const left = await bytesLeftPerCall(async (call) => {
    const kind = { ...widgetKind, group: `g${call}.example.com` } as Kind;
    scheme.setCustomVersions("widgets", [kind]);
    const { status } = await openApi.v3(`apis/${kind.group}/v1`, null, {});
    if (status !== 200) throw new Error(`The document is answered with ${status}`);
    await openApi.root(undefined);
    scheme.setCustomVersions("widgets", []);
  });
  t.ok(left < 4096, `${left} bytes for each definition`);
});

t.test("prefixes of kinds are bounded", async (t) => {
  const calls = 10_000;
  const left = await bytesLeftPerCall((call) => typeMetaPrefix({ kind: "Widget", apiVersion: `g${call}/v1` }), {
    calls,
  });
  t.ok(left < 64, `${left} bytes for each kind`);
});
