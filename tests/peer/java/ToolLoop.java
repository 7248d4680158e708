import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.util.Arrays;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs Apache Kafka's tools one after the other in this JVM. A line of stdin is a main class and its arguments, with tabs
 * between them. The answer is a line with the exit code and two lengths, then what the tool wrote to stdout and to stderr.
 */
public final class ToolLoop {
    private static final class Exited extends RuntimeException {
        private Exited() {
            super(null, null, false, false);
        }
    }

    /** The first one counts: a tool may catch what ends it, and exit again. */
    private static Integer exitCode;

    public static void main(String[] args) throws Exception {
        Exit.setExitProcedure((code, message) -> {
            exitCode = exitCode == null ? code : exitCode;
            throw new Exited();
        });
        PrintStream answers = System.out;
        BufferedReader calls = new BufferedReader(new InputStreamReader(System.in));
        for (String line = calls.readLine(); line != null; line = calls.readLine()) {
            String[] words = line.split("\t");
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            ByteArrayOutputStream err = new ByteArrayOutputStream();
            System.setOut(new PrintStream(out, true));
            System.setErr(new PrintStream(err, true));
            int code = run(words[0], Arrays.copyOfRange(words, 1, words.length));
            System.out.flush();
            System.err.flush();
            answers.print(code + " " + out.size() + " " + err.size() + "\n");
            answers.write(out.toByteArray());
            answers.write(err.toByteArray());
            answers.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    private static int run(String name, String[] args) {
        exitCode = null;
        try {
            Class.forName(name).getMethod("main", String[].class).invoke(null, (Object) args);
        } catch (InvocationTargetException e) {
            if (exitCode == null) {
                e.getCause().printStackTrace();
                return 1;
            }
        } catch (ReflectiveOperationException e) {
            e.printStackTrace();
            return 1;
        }
        return exitCode == null ? 0 : exitCode;
    }
}
