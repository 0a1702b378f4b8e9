// cli/verbs/allow.ts: `ags allow <rule>...`.
import { ruleVerb } from '../net/rule-verb.ts';

export default ruleVerb('allow', {
  summary: 'allow sandboxes to reach a host',
  about:
    'Without an option, the rule applies to running sandboxes of this project, at once and until they end. --project and --always write it into a file, leave the rest of the file as it is, and also change running sandboxes. A rule added with --project needs no "ags trust" unless other entries wait for approval. A rule is a host on port 443, "*.example.com" for all hosts below it, example.com:8443, http://example.com for port 80, or "GET,HEAD api.example.com/v1/*". A deny wins over every allow.',
  examples: [
    'ags allow example.com',
    "ags allow '*.example.com' example.com:8443",
    'ags allow --project registry.example.com',
    "ags allow --always 'GET,HEAD api.example.com/v1/*'",
    'ags allow --run build-w8xz example.com',
  ],
});
