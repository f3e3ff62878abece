/** Stories of all other controllers with faults between them and the API server: all end as without faults. */
import t from "tap";
import { faults } from "./faults.ts";
import { endpointsStory, loadBalancerStory } from "./stories/endpoints.ts";
import { cronJobStory, jobsStory } from "./stories/jobs.ts";
import { nodesStory } from "./stories/nodes.ts";
import { clusterStory, namespacesStory } from "./stories/objects.ts";
import { autoscalerStory, budgetStory } from "./stories/scaling.ts";
import { playStory, type Story } from "./stories/story.ts";
import { WorkloadCluster } from "./workload-cluster.ts";

const stories: readonly Story[] = [
  endpointsStory,
  loadBalancerStory,
  jobsStory,
  cronJobStory,
  budgetStory,
  autoscalerStory,
  nodesStory,
  namespacesStory,
  clusterStory,
];

t.setTimeout(600_000);
const wantedTitle = process.env.SVC_STORY ?? "";
for (const [index, story] of stories.entries()) {
  if (!story.title.includes(wantedTitle)) continue;
  t.test(`${story.title} end in the same state whatever fails`, { timeout: 300_000 }, async (t) => {
    const cluster = await WorkloadCluster.start(t, story.controllers, story);
    const wanted = await playStory(cluster, `s-${index}-plain`, story, { name: "nothing fails" });
    t.comment(JSON.stringify(wanted));
    for (const [number, fault] of faults.entries()) {
      t.same(await playStory(cluster, `s-${index}-${number}`, story, fault), wanted, fault.name);
    }
  });
}
