#!/usr/bin/perl
# Finds a piece of C in the source, and replaces it.
#
#	tests/mutate.pl DIR OLD [NEW]
#
# OLD has to occur exactly once in the .c files of DIR/lib and DIR/gpulease.  White space, line
# breaks and comments do not count: "f(a, b)" also finds "f(\n\ta, b)".  OLD with white space
# before it is preceded by white space in the source, too.  With NEW it is replaced.
# Prints the name of the file, relative to DIR; else says on stderr why not, and exits with 1.

use strict;
use warnings;
use File::Find;

die "usage: mutate.pl DIR OLD [NEW]\n" if @ARGV < 2;
my ($dir, $old, $new) = @ARGV;

# Comments become blanks, so that offsets stay.  A string may look like the begin of one.
sub without_comments {
	my ($text) = @_;
	$text =~ s{("(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')|(/\*.*?\*/|//[^\n]*)}
		{ defined $1 ? $1 : $2 =~ s/[^\n]/ /gr }gse;
	return $text;
}

my $bare = without_comments($old);
my @tokens = $bare =~ /\w+|[^\w\s]/g;
die "there is no code in the text\n" if !@tokens;

# Between two words there must be white space; elsewhere there may be.
my $pattern = $bare =~ /^\s/ ? '(?<!\S)' : $tokens[0] =~ /^\w/ ? '\b' : '';
my $last = '';
for my $token (@tokens) {
	my $both = $last =~ /\w$/ && $token =~ /^\w/;
	$pattern .= $both ? '\s+' : '\s*' if $last ne '';
	$pattern .= quotemeta $token;
	$last = $token;
}
$pattern .= $bare =~ /\s$/ ? '(?!\S)' : $last =~ /\w$/ ? '\b' : '';

my ($longest) = sort { length $b <=> length $a } @tokens;
my ($text, @found);
find({ no_chdir => 1, wanted => sub {
	return if !/\.c$/;
	open my $file, '<', $_ or die "$_: $!\n";
	my $here = do { local $/; <$file> };
	return if index($here, $longest) < 0;
	my $code = without_comments($here);
	while ($code =~ /$pattern/g) {
		push @found, { file => $_, from => $-[0], to => $+[0] };
		$text = $here;
	}
} }, "$dir/lib", "$dir/gpulease");

if (@found != 1) {
	my %files = map { substr($_->{file}, 1 + length $dir) => 1 } @found;
	my @some = (sort keys %files)[0 .. (keys %files > 4 ? 3 : keys(%files) - 1)];
	print STDERR @found ? scalar(@found) . ' times, in ' . join(' ', @some) . ' …' : 'nowhere',
		": $old\n";
	exit 1;
}
my $file = $found[0]{file};
if (defined $new) {
	substr($text, $found[0]{from}, $found[0]{to} - $found[0]{from}) = $new;
	open my $out, '>', $file or die "$file: $!\n";
	print $out $text;
	close $out or die "$file: $!\n";
}
print substr($file, 1 + length $dir), "\n";
