# demo.pl: the demo agent: a program without a model that does real work inside a sandbox, so that a whole task can be seen and
# tested without a key. The sandbox starts it with the goal on its standard input; arguments: its session, the command of the
# hooks, and whether it runs in a terminal.
# Always: it asks the hooks before each action, and prints one event of ags per line.
#
# The goal may be a script: steps separated by line breaks or " // ", each a word with a colon and its argument; the first may be
# a title.
#   say: text, read: path, write: path text, append: path text, delete: path, run: command, fetch: URL
#   commit: message, wait: seconds, use: millionths of a dollar, ask: question, fail: text
# Any other goal gets a tour: it reads, edits, runs the tests, and tries forbidden actions.
use strict; use warnings;
my ($session, $hook, $in_terminal) = (shift, shift, shift);
$| = 1;
my $goal = do { local $/; <STDIN> } // '';
my ($count, $refused) = (0, 0);

sub json {
  my ($value) = @_;
  if (ref $value eq 'HASH') { return '{' . join(',', map { json($_) . ':' . json($value->{$_}) } sort keys %$value) . '}' }
  if (ref $value eq 'ARRAY') { return '[' . join(',', map { json($_) } @$value) . ']' }
  if (ref $value) { return $$value }
  $value =~ s/(["\\])/\\$1/g;
  $value =~ s/([\x00-\x1f\x7f])/sprintf '\\u%04x', ord $1/ge;
  return qq("$value");
}
sub number { my ($n) = @_; $n += 0; return \$n }
sub report { my ($type, %more) = @_; print json({ type => $type, %more }), "\n" }
sub gate {
  my ($event, $tool, $action) = @_;
  return '' if $hook eq '';
  my $input = json({ tool => $tool, action => $action });
  open my $out, '>', "/tmp/demo-hook.$$" or return 'its question could not be written';
  print $out $input; close $out;
  # allowed (shell): the hooks' command is a shell line, as for other agents.
  my $said = qx($hook $event < /tmp/demo-hook.$$ 2>&1 >/dev/null);
  unlink "/tmp/demo-hook.$$";
  return $? == 0 ? '' : ($said eq '' ? 'a hook refused it' : $said);
}
sub act {
  my ($tool, $action, $do) = @_;
  my $id = 'demo-' . ++$count;
  report('tool.started', id => $id, tool => $tool, action => $action);
  my $no = gate('before', $tool, $action);
  if ($no ne '') { $refused++; chomp $no; report('tool.finished', id => $id, outcome => 'refused', output => $no); return 0 }
  my ($ok, $output, $code) = $do->();
  my @code = defined $code ? (exitCode => number($code)) : ();
  report('tool.finished', id => $id, outcome => $ok ? 'done' : 'failed', output => substr($output, 0, 65536), @code);
  gate('after', $tool, $action) if $ok && $action->{kind} eq 'write';
  return $ok;
}
sub run {
  my ($command) = @_;
  act('Shell', { kind => 'command', command => $command }, sub {
    # allowed (shell): it runs commands as an agent does.
    my $output = qx{( $command ) 2>&1};
    my $code = $? & 127 ? 128 + ($? & 127) : $? >> 8;
    return ($code == 0, $output, $code);
  });
}
sub read_file {
  my ($path) = @_;
  my $text = '';
  act('Read', { kind => 'read', path => $path }, sub {
    my $real = $path; $real =~ s/^~/$ENV{HOME}/;
    open my $in, '<', $real or return (0, "$path: $!");
    local $/; $text = <$in> // '';
    return (1, sprintf '%d bytes', length $text);
  });
  return $text;
}
sub write_file {
  my ($mode, $path, $text) = @_;
  my ($tool, $change) = $mode eq '>' ? ('Write', 'write') : ('Edit', 'edit');
  act($tool, { kind => 'write', path => $path, change => $change, content => $text }, sub {
    my $dir = $path; if ($dir =~ s{/[^/]*$}{}) { system 'mkdir', '-p', '--', $dir }
    open my $out, $mode, $path or return (0, "$path: $!");
    print $out $text; close $out or return (0, "$path: $!");
    return (1, sprintf '%d bytes written', length $text);
  });
}
sub fetch {
  my ($url) = @_;
  act('Fetch', { kind => 'fetch', url => $url }, sub {
    my ($host, $port) = $url =~ m{^\w+://([^/:]+)(?::(\d+))?} or return (0, 'not a URL');
    require IO::Socket::INET;
    my $proxy = IO::Socket::INET->new(PeerAddr => '127.0.0.1:3128', Timeout => 10) or return (0, 'there is no network');
    print $proxy "CONNECT $host:" . ($port // 443) . " HTTP/1.1\r\nHost: $host:" . ($port // 443) . "\r\n\r\n";
    my $answer = '';
    while (sysread $proxy, my $more, 4096) { $answer .= $more; last if length $answer > 4096 || $answer =~ /^HTTP\S+ 200/ }
    my ($first) = $answer =~ /^([^\r\n]*)/;
    my ($why) = $answer =~ /\r\n\r\n([^\r\n]+)/;
    return ($first =~ / 200/ ? 1 : 0, $why // $first);
  });
}
my %do = (
  say => sub { report('agent.said', text => $_[0]) },
  read => sub { read_file($_[0]) },
  write => sub { my ($path, $text) = split / /, $_[0], 2; write_file('>', $path, ($text // '') . "\n") },
  append => sub { my ($path, $text) = split / /, $_[0], 2; write_file('>>', $path, ($text // '') . "\n") },
  delete => sub {
    my $path = $_[0];
    act('Delete', { kind => 'write', path => $path, change => 'delete' }, sub { unlink($path) ? (1, '') : (0, "$path: $!") });
  },
  run => sub { run($_[0]) },
  fetch => sub { fetch($_[0]) },
  commit => sub { my $text = $_[0]; $text =~ s/'/'\\''/g; run("git add -A && git commit -qm '$text'") },
  wait => sub { select undef, undef, undef, $_[0] },
  use => sub { report('agent.used', inputTokens => number(1000), outputTokens => number(100), costMicros => number($_[0])) },
  ask => sub { report('agent.asked', question => $_[0]) },
  fail => sub { report('agent.finished', ok => \'false', reason => $_[0]); exit 1 },
);
sub tour {
  report('agent.said', text => 'I am the demo agent: no model, but real work in a real sandbox. First I look around.');
  run('git log --oneline -3 && git ls-files | head -20');
  my $readme = (grep { -e } qw(README.md README README.txt))[0];
  my $known = defined $readme ? read_file($readme) : '';
  my $lines = () = $known =~ /\n/g;
  report('agent.said', text => 'Now I write down the goal, as any agent would begin.');
  write_file('>', 'NOTES.md', "# Notes\n\nGoal: $goal\n\nRead: " . ($readme // 'nothing') . ", $lines lines.\n");
  write_file('>>', $readme, "\nSee NOTES.md for what is being worked on.\n") if defined $readme;
  my $tests = -e 'package.json' && read_file('package.json') =~ /"test"\s*:/ ? 'npm test --silent'
    : -e 'Makefile' && read_file('Makefile') =~ /^test:/m ? 'make test' : '';
  if ($tests ne '') { report('agent.said', text => 'The project has tests, so I run them.'); run($tests) }
  report('agent.said', text => 'Now I try what is forbidden: a host that no rule allows, and your keys.');
  fetch('https://exfiltration.example/');
  read_file('~/.ssh/id_ed25519');
  report('agent.said', text => 'Both were refused. My work is done; it is on its own branch, ready for your review.');
}
# In a terminal it shows that it works, as other agents do: in the window's title, until it ends.
my $ticker = $in_terminal ? fork : undef;
if (defined $ticker && !$ticker) { syswrite STDOUT, "\e]2;at work\a" while !select undef, undef, undef, 0.5; exit }
END { if ($ticker) { kill 'KILL', $ticker; syswrite STDOUT, "\e]2;demo\a" } }
report('agent.started', session => $session, model => 'none');
my @parts = grep { /\S/ } split m{\n| // }, $goal;
shift @parts if @parts > 1 && $parts[0] !~ /^\s*(\w+):/;
if (@parts && !grep { !/^\s*(\w+):/ || !$do{$1} } @parts) {
  for (@parts) { /^\s*(\w+):\s*(.*?)\s*$/ and $do{$1}->($2) }
} else { tour() }
my $stop = $in_terminal ? gate('stop', '', { kind => 'other', input => '' }) : '';
if ($stop ne '') { chomp $stop; report('agent.said', text => "I was sent back: $stop") }
report('agent.finished', ok => \'true', text => $refused == 0 ? 'Done.' : "Done; $refused of my steps were refused.");
