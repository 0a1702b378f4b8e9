// cli/verbs/deny.ts: `ags deny <rule>...`.
import { ruleVerb } from '../net/rule-verb.ts';

export default ruleVerb('deny', {
  summary: 'keep sandboxes from reaching a host',
  about:
    'A deny wins over every allow, built-in ones included. Without an option it holds for the sandboxes of this project that are running now, at once, for connections that are made from then on. --project and --always write it into a file, and reach running sandboxes too. Rules are written as for "ags allow".',
  examples: [
    'ags deny gist.github.com',
    "ags deny --project '*.example.com'",
    'ags deny --always telemetry.example.com',
  ],
});
