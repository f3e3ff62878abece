/** kubectl: workloads without controllers, so that no pods and no revisions are created. */
import { type KubectlOutput, testWithKubectls } from "../../testing/apiserver/kubectl-harness.ts";

const workloads = `apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: c, image: "db:1"}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: logs}
spec:
  selector: {matchLabels: {app: logs}}
  template:
    metadata: {labels: {app: logs}}
    spec: {nodeSelector: {disk: ssd}, containers: [{name: c, image: "logs:1"}]}
---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: rs}
spec:
  replicas: 2
  selector: {matchLabels: {app: rs}}
  template:
    metadata: {labels: {app: rs}}
    spec: {containers: [{name: c, image: "rs:1"}]}
---
apiVersion: v1
kind: ReplicationController
metadata: {name: rc}
spec:
  replicas: 2
  template:
    metadata: {labels: {app: rc}}
    spec: {containers: [{name: c, image: "rc:1"}]}
`;

const cases: readonly KubectlOutput[] = [
  ["create deployment web --image=nginx:1 --replicas=2", /deployment\.apps\/web created/],
  [
    "get deployments -o wide",
    /READY +UP-TO-DATE +AVAILABLE +AGE +CONTAINERS +IMAGES +SELECTOR\nweb +0\/2 +0 +0 +\S+ +nginx +nginx:1 +app=web/,
  ],
  [
    "describe deployment web",
    /StrategyType: +RollingUpdate\n.*RollingUpdateStrategy: +25% max unavailable, 25% max surge/s,
  ],
  ["scale deployment web --current-replicas=2 --replicas=3", /deployment\.apps\/web scaled/],
  ["scale deployment web --current-replicas=2 --replicas=4", /Expected replicas to be 2, was 3/],
  ["get deployment web -o jsonpath={.spec.replicas}/{.metadata.generation}", /^3\/2$/],
  ["get --raw /apis/apps/v1/namespaces/default/deployments/web/scale", /"selector":"app=web"/],
  ["1.27: get deployment web --subresource=scale", /NAME +DESIRED +AVAILABLE +AGE?\nweb +3 +0 /],
  [
    '1.27: patch deployment web --subresource=scale --type=merge -p {"spec":{"replicas":1}}',
    /scale\.autoscaling\/web patched/,
  ],
  ["set env deployment/web MODE=fast", /deployment\.apps\/web env updated/],
  [
    "set resources deployment/web --limits=cpu=200m,memory=512Mi",
    /deployment\.apps\/web resource requirements updated/,
  ],
  ["expose deployment web --port=80", /service\/web exposed/],
  ["set image deployment/web nginx=nginx:2", /deployment\.apps\/web image updated/],
  ["rollout pause deployment/web", /deployment\.apps\/web paused/],
  ["rollout resume deployment/web", /deployment\.apps\/web resumed/],
  ["rollout restart deployment/web", /deployment\.apps\/web restarted/],
  ["rollout history deployment/web", /No rollout history found/],
  ["rollout status deployment/web --watch=false", /Waiting for deployment spec update to be observed/],
  ["rollout undo deployment/web", /no rollout history found for deployment "web"/],
  ["autoscale deployment web --min=1 --max=5 --cpu-percent=80", /horizontalpodautoscaler\.autoscaling\/web autoscaled/],
  ["get hpa", /web +Deployment\/web +(cpu: )?<unknown>\/80% +1 +5 +0 /],
  [
    "get horizontalpodautoscalers.v1.autoscaling web -o jsonpath={.apiVersion}:{.spec.targetCPUUtilizationPercentage}",
    /^autoscaling\/v1:80$/,
  ],
  ["describe hpa web", /Min replicas: +1\nMax replicas: +5/],
  ["create job hello --image=busybox -- date", /job\.batch\/hello created/],
  ["get jobs", /hello .*0\/1 /],
  ["describe job hello", /batch\.kubernetes\.io\/job-name=hello/],
  ["1.27: create cronjob tick --image=busybox --schedule=@hourly -- date", /cronjob\.batch\/tick created/],
  ["1.27: create cronjob tock --image=busybox --schedule=@fortnightly", /unrecognized descriptor: @fortnightly/],
  ["1.27: get cronjobs -o wide", /tick +@hourly +(<none> +)?False +0 +<none> +\S+ +tick +busybox +<none>/],
  ["1.27: create job now --from=cronjob/tick", /job\.batch\/now created/],
  [
    "1.27: create poddisruptionbudget calm --selector=app=web --min-available=1",
    /poddisruptionbudget\.policy\/calm created/,
  ],
  ["1.27: get pdb", /calm +1 +N\/A +0 /],
  ["apply -f DIR/workloads.yaml", /statefulset\S+ created.*daemonset\S+ created.*replicaset\S+ created.*rc created/s],
  ["apply -f DIR/workloads.yaml", /db (?:configured|unchanged).*logs unchanged.*rs unchanged.*rc unchanged/s],
  ["get statefulsets,daemonsets,replicasets", /db +0\/1 .*logs +0 +0 +0 +0 +0 +disk=ssd .*rs +2 +0 +0 /s],
  ["scale statefulset/db replicaset/rs replicationcontroller/rc --replicas=0", /db scaled.*rs scaled.*rc scaled/s],
  ["apply --server-side --force-conflicts -f DIR/workloads.yaml", /db serverside-applied.*rc serverside-applied/s],
  ["diff -f DIR/workloads.yaml", /^(?!.*error)/s],
  ["rollout history statefulset/db", /REVISION|No rollout history found/i],
  ["set image daemonset/logs c=logs:2", /daemonset\.apps\/logs image updated/],
  ["get daemonset logs -o jsonpath={.metadata.annotations}", /template\.generation":"2"/],
  ["delete job hello", /child pods are preserved by default when jobs are deleted|job\.batch "hello" deleted/],
  [
    "1.27: delete deployment,hpa,job,cronjob,pdb --all",
    /deployment\.apps "web" deleted.*pod ?disruption|"calm" deleted/s,
  ],
  ["delete -f DIR/workloads.yaml", /"db" deleted.*"logs" deleted.*"rs" deleted.*"rc" deleted/s],
];

testWithKubectls(cases, { files: { "workloads.yaml": workloads } });
