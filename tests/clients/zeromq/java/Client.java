// A socket of JeroMQ: sends each line of stdin, in hexadecimal, and prints what comes back.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HexFormat;
import org.zeromq.SocketType;
import org.zeromq.ZContext;
import org.zeromq.ZMQ;

public final class Client {
	public static void main(String[] arguments) throws Exception {
		BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
		HexFormat hex = HexFormat.of();
		try (ZContext context = new ZContext()) {
			ZMQ.Socket socket = context.createSocket(SocketType.valueOf(arguments[1]));
			socket.setLinger(0);
			socket.setReceiveTimeOut(10000);
			socket.connect(arguments[0]);
			for (String line = lines.readLine(); line != null; line = lines.readLine()) {
				socket.send(hex.parseHex(line));
				System.out.println(hex.formatHex(socket.recv()));
			}
		}
	}
}
