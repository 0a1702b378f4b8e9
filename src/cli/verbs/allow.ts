// cli/verbs/allow.ts: `ags allow <rule>...`.
import { ruleVerb } from '../net/rule-verb.ts';

export default ruleVerb('allow', {
  summary: 'let sandboxes reach a host',
  about:
    'Without an option it holds for the sandboxes of this project that are running now, at once, and until they end. --project and --always also last: they write the rule into a file, keep all else in it, and reach running sandboxes too. What you approve with --project needs no "ags trust" if nothing else waits for one. A rule is a host on port 443, "*.example.com" for all below it, example.com:8443, http://example.com for port 80, or "GET,HEAD api.example.com/v1/*". A deny wins over every allow.',
  examples: [
    'ags allow example.com',
    "ags allow '*.example.com' example.com:8443",
    'ags allow --project registry.example.com',
    "ags allow --always 'GET,HEAD api.example.com/v1/*'",
    'ags allow --run build-w8xz example.com',
  ],
});
