import t from "tap";
import { qosClassOf } from "./qos.ts";

t.test("qosClassOf() follows from requests and limits", async (t) => {
  const both = { cpu: "1", memory: "1Gi" };
  const of = (resources: object) => qosClassOf({ containers: [{ name: "a", resources }] });
  t.equal(of({}), "BestEffort");
  t.equal(of({ limits: { "example.com/gpu": "1" } }), "BestEffort");
  t.equal(of({ requests: both, limits: both }), "Guaranteed");
  t.equal(of({ limits: both }), "Guaranteed", "limits alone are requests too");
  t.equal(of({ requests: { cpu: "1000m", memory: "1Gi" }, limits: both }), "Guaranteed", "equal amounts, other words");
  t.equal(of({ limits: { cpu: "1" } }), "Burstable");
  t.equal(of({ requests: both }), "Burstable");
  const container = { name: "a", resources: { requests: { cpu: "1" } } };
  const ofPod = (resources: object) => qosClassOf({ containers: [container], resources });
  t.equal(ofPod({}), "Burstable");
  t.equal(ofPod({ requests: both, limits: both }), "Guaranteed", "of the pod as a whole, whatever its containers have");
  t.equal(ofPod({ requests: { cpu: "1" }, limits: both }), "Guaranteed");
  t.equal(ofPod({ requests: both }), "Burstable");
  t.equal(ofPod({ limits: { memory: "1Gi" } }), "Burstable");
});
